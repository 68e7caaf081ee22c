#include "measure/stopping.h"

#include <algorithm>
#include <cmath>

namespace tilewright::measure {

std::string_view name(StopReason reason) {
  switch (reason) {
    case StopReason::Continue: return "";
    case StopReason::Precision: return "precision";
    case StopReason::NoiseFloor: return "noise-floor";
    case StopReason::Timeout: return "timeout";
  }
  return "";
}

StopReason StopMachine::add(double sample_ms, double elapsed_ms) {
  samples_.push_back(sample_ms);
  total_ms_ += sample_ms;
  if (reason_ == StopReason::Continue) reason_ = decide(elapsed_ms);
  return reason_;
}

bool StopMachine::is_spread_stable() const {
  constexpr size_t kWindow = 4;
  if (spreads_.size() < kWindow) return false;
  const auto [low, high] = std::minmax_element(spreads_.end() - kWindow, spreads_.end());
  return *high <= *low * (1 + 4 * rule_.spread_change);
}

StopReason StopMachine::decide(double elapsed_ms) {
  const bool has_enough = static_cast<int64_t>(samples_.size()) >= rule_.min_samples && total_ms_ >= rule_.min_total_ms;
  if (has_enough && samples_.size() >= next_check_) {
    next_check_ = samples_.size() + samples_.size() / 4 + 1;
    const std::vector<double> ordered = sorted(samples_);
    const auto interval = median_interval(ordered, 0.95);
    spreads_.push_back(relative_spread(ordered));
    if (interval) {
      const double half_width = relative_half_width(*interval, median(ordered));
      if (half_width <= rule_.precision) return StopReason::Precision;
      // The half-width falls with the square root of the time spent, when the spread is what it is.
      const double needed_ms = elapsed_ms * std::pow(half_width / rule_.precision, 2);
      if (is_spread_stable() && needed_ms > rule_.timeout_ms) return StopReason::NoiseFloor;
    }
  }
  if (elapsed_ms >= rule_.timeout_ms || static_cast<int64_t>(samples_.size()) >= rule_.max_samples)
    return StopReason::Timeout;
  return StopReason::Continue;
}

}  // namespace tilewright::measure
