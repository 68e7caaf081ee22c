// The matrix instructions of NVIDIA GPUs as data: shapes, types, and which element of a tile each register of each lane
// holds. Source of the register maps and descriptors: PTX ISA 8.0, "Warp-level matrix instructions" and "Asynchronous
// warpgroup-level matrix instructions"; vectors recorded on the hardware (tests/target/vectors) replay against them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/tensor_map.h"
#include "ir/thread_program.h"

namespace tilewright::target {

using ir::thread::Scalar;

struct MmaRow {
  std::string_view name;
  int m, n, k;
  Scalar a, b, accumulator;
  int a_registers, b_registers, c_registers;
  int least_architecture;
};
enum class Mma : uint8_t {
#define TW_MMA(name, ...) name,
#define TW_WGMMA(name, ...)
#include "target/gpu_matrix.def"
#undef TW_MMA
#undef TW_WGMMA
  count
};
const MmaRow& row(Mma mma);

struct WgmmaRow {
  std::string_view name;
  int k;
  Scalar a, b, accumulator;
  bool transposable;
};
enum class Wgmma : uint8_t {
#define TW_MMA(name, ...)
#define TW_WGMMA(name, ...) name,
#include "target/gpu_matrix.def"
#undef TW_MMA
#undef TW_WGMMA
  count
};
const WgmmaRow& row(Wgmma wgmma);

struct Cell {
  int row, column;
};
/// Element `e` of register `r` of lane `lane` of operand A: (row, k). `bits`: of one element.
Cell mma_a_cell(int bits, int lane, int r, int e);
/// Operand B: (k, column).
Cell mma_b_cell(int bits, int lane, int r, int e);
/// Accumulator register `r`: (row, column); rows 8 apart for r bit 1, blocks of 8 columns from bit 2 up (wgmma: rows of
/// this warp).
Cell mma_c_cell(int lane, int r);

/// The shared-memory operand of wgmma as the descriptor encodes it.
struct MatrixDescriptor {
  uint32_t address = 0;  ///< bytes, a multiple of 16
  uint32_t leading = 0;  ///< "leading dimension byte offset"
  uint32_t stride = 0;   ///< "stride dimension byte offset"
  Swizzle swizzle = Swizzle::None;
};
uint64_t encode(const MatrixDescriptor& descriptor);
MatrixDescriptor decode(uint64_t bits);
/// Shared address of the byte `k_byte` along k of row `mn` of a k-major operand.
uint32_t k_major_address(const MatrixDescriptor& d, int mn, int k_byte);
/// Shared address of element `mn` (bytes `mn_byte`) of slice `k` of an operand whose rows run along m or n.
uint32_t mn_major_address(const MatrixDescriptor& d, int mn_byte, int k);

}  // namespace tilewright::target
