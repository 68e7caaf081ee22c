// When a sampled loop has seen enough: a state machine without a clock. Feed it samples, ask it what to do.
//
//   precision    n ≥ min_samples, Σt ≥ min_total_ms, half-width of the median's 95 % interval ≤ precision
//   noise-floor  the spread has stopped moving and more samples within the time limit would not reach the precision
//   timeout      the time limit passed first; such a cell cannot support a decision
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "measure/order_statistics.h"

namespace tilewright::measure {

struct StopRule {
  int64_t min_samples = 30;
  double min_total_ms = 500;
  double precision = 0.01;      ///< relative half-width of the median's 95 % interval
  double timeout_ms = 15'000;   ///< of everything, flushes included
  double spread_change = 0.05;  ///< spreads at successive checkpoints that differ less than this count as "not moving"
  int64_t max_samples = 1'000'000;
};

enum class StopReason : uint8_t { Continue, Precision, NoiseFloor, Timeout };
std::string_view name(StopReason reason);  ///< "", "precision", "noise-floor", "timeout"

class StopMachine {
 public:
  explicit StopMachine(StopRule rule) : rule_(rule) {}

  /// One sample, and the time on the wall since the loop began (the samples are a part of it).
  StopReason add(double sample_ms, double elapsed_ms);

  const std::vector<double>& samples() const { return samples_; }
  StopReason reason() const { return reason_; }

 private:
  StopReason decide(double elapsed_ms);
  bool is_spread_stable() const;

  StopRule rule_;
  std::vector<double> samples_;
  double total_ms_ = 0;
  size_t next_check_ = 0;
  std::vector<double> spreads_;  ///< relative spread at each checkpoint (every 25 % more samples)
  StopReason reason_ = StopReason::Continue;
};

}  // namespace tilewright::measure
