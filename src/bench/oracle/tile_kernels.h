// A plain tile-by-tile implementation of the operators, in the declared types, whose mistakes can be planted: what the
// oracle is tested on. Clean, it is a control that must be accepted (its order of summation differs from the oracle's);
// with a mutant it must be rejected. Slow by design; not a candidate anyone would ship.
#pragma once

#include <optional>
#include <span>

#include "bench/oracle/mutant.h"
#include "bench/oracle/workload.h"
#include "candidate/candidate.h"

namespace tilewright::bench {

/// A kernel to be run: which mistake (none: clean), in which of its variants (causal ±1), with which tile edge.
struct TileKernel {
  std::optional<Mutant> mutant;
  int variant = 0;
  int64_t tile = 32;
};

/// Computes the workload on the tensors (inputs first). May write outside the output when `EdgeMaskSkipped` (at most
/// 4096 bytes).
Status run_tile_kernel(const Workload& workload, const TileKernel& kernel, std::span<const candidate::Tensor> tensors);

}  // namespace tilewright::bench
