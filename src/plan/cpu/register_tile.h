// The register tile of a gemm: MR rows by NR columns of C kept in registers over the whole depth of a cache block.
//
// The choice minimises a stated cost (see choose_register_tile) over every tile that fits the registers.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "target/cpu_dot.h"

namespace tilewright::plan::cpu {

struct RegisterTile {
  int rows = 1;
  int vectors = 1;  ///< vectors per row
  int lanes = 1;    ///< elements per vector
  int columns() const { return vectors * lanes; }
};

/// How a panel of B lies: rows of one register tile's width, one k or, for a dot product, `terms()` of them
/// interleaved.
struct PanelShape {
  RegisterTile tile;
  DType compute = DType::F32;
  const target::CpuDot* dot = nullptr;  ///< integer dot product, or null
  int terms() const { return dot ? dot->terms : 1; }
  int64_t row_bytes() const { return int64_t{tile.columns()} * bytes(compute); }
};

/// Cycles of one cache block = tiles · (depth · (max(FMAs / 2, loads / 2, latency) + a share of the loads) + what a
/// tile costs to enter and leave).
RegisterTile choose_register_tile(const target::Cpu& cpu, int64_t rows, int64_t columns, DType compute);

/// Depth of a cache block: a panel of B stays in the first-level cache when 256 of its rows fit, else it streams from
/// the second, of which it takes a sixteenth. A deeper block enters and leaves C less often.
int64_t choose_depth_block(const target::Cpu& cpu, const RegisterTile& tile, DType compute);

}  // namespace tilewright::plan::cpu
