// What the harness itself adds to a short kernel: one of 10 µs, sampled as every kernel is, against the same launches
// in one uninterrupted batch.
#pragma once

#include "base/diagnostic.h"

namespace tilewright::bench {

struct OverheadSelftest {
  double kernel_us = 10;    ///< what the kernel spins
  double sampled_us = 0;    ///< median of the sampled loop
  double batch_us = 0;      ///< least wall time per launch of several batches
  double own_percent = 0;   ///< 100 · (sampled / batch − 1): what a sample says more than the batch
  double wall_percent = 0;  ///< what the loop around a sample costs besides, per launch, in percent of the kernel
  int64_t samples = 0;
  double limit_percent = 5;

  bool passed() const { return own_percent <= limit_percent && own_percent >= -limit_percent; }
};

Result<OverheadSelftest> run_overhead_selftest();

}  // namespace tilewright::bench
