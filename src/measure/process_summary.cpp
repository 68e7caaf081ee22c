#include "measure/process_summary.h"

#include <cmath>
#include <numeric>

namespace tilewright::measure {
namespace {

double mean(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double between_share(const std::vector<std::vector<double>>& groups) {
  double within = 0, between = 0, total_count = 0, grand = 0;
  for (const auto& group : groups) {
    grand += std::accumulate(group.begin(), group.end(), 0.0);
    total_count += static_cast<double>(group.size());
  }
  grand /= total_count;
  for (const auto& group : groups) {
    const double center = mean(group);
    for (double x : group) within += (x - center) * (x - center);
    between += static_cast<double>(group.size()) * (center - grand) * (center - grand);
  }
  return within + between > 0 ? between / (within + between) : 0;
}

}  // namespace

ProcessSummary summarize(const std::vector<std::vector<double>>& groups) {
  ProcessSummary out;
  for (const auto& group : groups) {
    const std::vector<double> ordered = sorted(group);
    out.process_medians.push_back(median(ordered));
    out.samples += static_cast<int64_t>(group.size());
    out.outliers += count_outliers(ordered);
  }
  const std::vector<double> medians = sorted(out.process_medians);
  out.value = median(medians);
  if (medians.size() > 1) {
    out.interval =
        Interval{medians.front(), medians.back(), 1 - 2 * std::pow(0.5, static_cast<double>(medians.size()))};
  }
  out.between_share = between_share(groups);
  return out;
}

}  // namespace tilewright::measure
