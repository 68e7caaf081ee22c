// One number from several processes: the median of their medians. Its interval is [min, max] of the medians: 1 − 2·½ᵏ
// for k processes, 96.9 % for six. Samples within one process share a memory layout and a phase of the machine;
// processes are the independent unit.
#pragma once

#include <optional>
#include <vector>

#include "measure/order_statistics.h"

namespace tilewright::measure {

struct ProcessSummary {
  double value = 0;
  std::optional<Interval> interval;  ///< nothing for one process
  std::vector<double> process_medians;
  int64_t samples = 0;
  int64_t outliers = 0;
  double between_share = 0;  ///< share of the samples' variance that lies between processes, 0…1
};

/// Every process has at least one sample.
ProcessSummary summarize(const std::vector<std::vector<double>>& samples_by_process);

}  // namespace tilewright::measure
