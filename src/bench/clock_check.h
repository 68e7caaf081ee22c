// Is the clock that gave the samples to be believed? Launches in a row, timed by the kernel's clock from outside, must
// cost about what a sample says: neither a worker's own clock nor ours was bent.
//
// A worker tells its time of the very launches that are timed from outside, so that a busy machine delays both alike;
// and what it tells of launches in a row must be what it tells of single ones. Our own clock is held against the least
// of many short batches, without the time in which other work had the processor.
//
// Guarantees: a disturbance cannot make honest clocks disagree for long, and a batch is short by the clock outside,
// whatever the samples say. Does not see: a worker's clock that is off by less than 15 %, or by a microsecond a launch.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "base/diagnostic.h"

namespace tilewright::bench {

struct ClockCheck {
  double own_ms = 0;              ///< median of the samples, nothing flushed
  double batch_ms = 0;            ///< cost of a launch in a row, by the clock outside: the least, or beside `told_ms`
  std::optional<double> told_ms;  ///< what a worker said of the same launches
  int count = 0;                  ///< launches of that batch
  bool agree = false;
};
nlohmann::json to_json(const ClockCheck& check);
ClockCheck parse_clock_check(const nlohmann::json& json);
/// "timer-disagrees: its clock says 0.6 ms a launch, 10 in a row took 2 ms each"; starts with kTimerDisagrees.
std::string disagreement(const ClockCheck& check);
inline constexpr std::string_view kTimerDisagrees = "timer-disagrees";

/// Launches in a row, ms for each.
struct TimedBatch {
  double outside_ms = 0;                       ///< by the kernel's clock
  std::optional<double> told_ms, told_median;  ///< mean and median of what a worker said of each
};
TimedBatch timed_batch(double outside_ms, std::span<const double> told);

struct ClockCheckOptions {
  bool is_remote = false;     ///< a worker tells its times itself
  bool is_on_device = false;  ///< launches are enqueued
  int64_t patience_ns = 2'000'000'000;
  int process = 0;  ///< of a worker on a device, whose waiting for a processor is left out; 0: none
};
/// At most the patience and a batch or two, and only where the clocks do not agree at once.
Result<ClockCheck> check_clock(double own_ms, const ClockCheckOptions& options,
                               const std::function<Result<TimedBatch>(int count)>& batch);

}  // namespace tilewright::bench
