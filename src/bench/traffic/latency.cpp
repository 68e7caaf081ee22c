#include "bench/traffic/latency.h"

#include <algorithm>

namespace tilewright::traffic {

std::optional<int64_t> steady_index(std::span<const uint8_t> missed) {
  const int64_t n = static_cast<int64_t>(missed.size());
  if (n < kSteadyWindow) return std::nullopt;
  int64_t in_window = 0;
  int64_t steady = 0;
  for (int64_t i = 0; i < n; ++i) {
    in_window += missed[i];
    if (i >= kSteadyWindow) in_window -= missed[i - kSteadyWindow];
    const int64_t begin = i - kSteadyWindow + 1;
    if (begin >= 0 && in_window >= kSteadyMisses) steady = begin + 1;
  }
  if (steady > n - kSteadyWindow) return std::nullopt;
  return steady;
}

std::vector<double> miss_rates(std::span<const uint8_t> missed) {
  std::vector<double> rates;
  for (size_t at = 0; at < missed.size(); at += kSteadyWindow) {
    const std::span<const uint8_t> window = missed.subspan(at, std::min<size_t>(kSteadyWindow, missed.size() - at));
    int64_t misses = 0;
    for (uint8_t m : window) misses += m;
    rates.push_back(static_cast<double>(misses) / static_cast<double>(window.size()));
  }
  return rates;
}

}  // namespace tilewright::traffic
