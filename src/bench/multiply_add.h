// Fused multiply-adds from registers: the most arithmetic a core can do, as a loop of known length.
#pragma once

#include <cstdint>

namespace tilewright::bench {

/// `run(rounds)` does flops_per_round · rounds operations in the widest vectors of this processor; its value only keeps
/// the work alive.
struct MultiplyAdd {
  double (*run)(int64_t rounds);
  double flops_per_round;
};
MultiplyAdd best_multiply_add();

}  // namespace tilewright::bench
