// What the harness itself adds to a short kernel: one of 10 µs, sampled as every kernel is, beside the same launches in
// one uninterrupted batch. Blocks of both alternate, and the medians of their ratios are reported with their 95 %
// intervals, so that a disturbance of the machine moves neither.
#pragma once

#include "base/diagnostic.h"
#include "measure/order_statistics.h"

namespace tilewright::bench {

struct OverheadSelftest {
  double kernel_us = 10;   ///< what the kernel spins
  double sampled_us = 0;   ///< median over the blocks of their median sample
  double batch_us = 0;     ///< median over the blocks of wall time per launch in the batch
  double own_percent = 0;  ///< 100 · (median sample / batch − 1): what a sample says more than the batch
  double wall_percent = 0;  ///< 100 · (wall time of the sampling loop per launch / batch − 1): all that sampling costs
  measure::Interval own_interval, wall_interval;
  int blocks = 0;
  int64_t samples = 0;
  double limit_percent = 5;

  /// Neither may be above the limit, nor may a sample say less than the batch by as much.
  bool passed() const {
    return own_percent <= limit_percent && own_percent >= -limit_percent && wall_percent <= limit_percent;
  }
};

Result<OverheadSelftest> run_overhead_selftest();

}  // namespace tilewright::bench
