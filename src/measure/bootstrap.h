// The percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, §13) with a stored seed: same seed,
// same interval.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "measure/order_statistics.h"

namespace tilewright::measure {

struct BootstrapOptions {
  int resamples = 10'000;
  uint64_t seed = 1;
  double level = 0.95;
};

/// The statistic of every resample, sorted. `statistic` sees the drawn indices into 0…count−1, so pairs stay pairs.
std::vector<double> bootstrap(size_t count, const BootstrapOptions& options,
                              const std::function<double(std::span<const size_t>)>& statistic);

/// [(1−level)/2, (1+level)/2] percentiles of the above.
Interval bootstrap_interval(size_t count, const BootstrapOptions& options,
                            const std::function<double(std::span<const size_t>)>& statistic);

}  // namespace tilewright::measure
