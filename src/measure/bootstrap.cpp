#include "measure/bootstrap.h"

#include <algorithm>

#include "measure/random.h"

namespace tilewright::measure {

std::vector<double> bootstrap(size_t count, const BootstrapOptions& options,
                              const std::function<double(std::span<const size_t>)>& statistic) {
  Random random(options.seed);
  std::vector<size_t> drawn(count);
  std::vector<double> values(static_cast<size_t>(options.resamples));
  for (double& value : values) {
    for (size_t& index : drawn) index = random.below(count);
    value = statistic(drawn);
  }
  std::sort(values.begin(), values.end());
  return values;
}

Interval bootstrap_interval(size_t count, const BootstrapOptions& options,
                            const std::function<double(std::span<const size_t>)>& statistic) {
  const std::vector<double> values = bootstrap(count, options, statistic);
  return {percentile(values, (1 - options.level) / 2), percentile(values, (1 + options.level) / 2), options.level};
}

}  // namespace tilewright::measure
