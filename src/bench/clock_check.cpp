#include "bench/clock_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "measure/clock.h"
#include "measure/machine.h"
#include "measure/order_statistics.h"

namespace tilewright::bench {
namespace {

constexpr double kTold = 1.15;     // outside against what a worker says of the same launches
constexpr double kSamples = 1.25;  // launches in a row against single ones, taken at another moment
constexpr double kClockMs = 2e-4;

bool is_within(double own_ms, double tolerance, double outside_ms) {
  return outside_ms <= own_ms * tolerance + kClockMs;
}

/// What a launch in a row costs that a sample does not have: the request to a worker and its loop, or what a host pays
/// per launch when the kernel is too short to hide it.
double trip_ms(const ClockCheckOptions& options, int count) {
  const double enqueue_ms = options.is_on_device ? 0.02 : options.is_remote ? 1e-3 : 0;
  return enqueue_ms + (options.is_remote ? 0.5 / count : 0);
}

int launches_in(double ms, double one_ms) { return std::clamp(static_cast<int>(ms / std::max(one_ms, 1e-4)), 1, 5000); }

using Batch = std::function<Result<TimedBatch>(int count)>;

/// Batches grow: what a request and its wake-ups cost on a busy machine is spread over more and more launches.
Result<ClockCheck> check_told(double own_ms, const ClockCheckOptions& options, const Batch& batch, double one_ms) {
  constexpr double kFirstMs = 20, kLongestMs = 500;
  ClockCheck out{own_ms, 0, {}, 0, false};
  double least_median = 1e300;
  bool is_true_outside = false;
  const int64_t start = measure::kernel_ns();
  for (int count = launches_in(kFirstMs, one_ms);;) {
    auto timed = batch(count);
    if (!timed) return std::unexpected(timed.error());
    const bool is_true = is_within(*timed->told_ms, kTold, timed->outside_ms - trip_ms(options, count));
    least_median = std::min(least_median, *timed->told_median);
    if (!is_true_outside) out = {own_ms, timed->outside_ms, timed->told_ms, count, false};
    is_true_outside |= is_true;
    out.agree = is_true_outside && is_within(own_ms, kSamples, least_median);
    if (out.agree || measure::kernel_ns() - start > options.patience_ns) return out;
    if (2 * count * timed->outside_ms < kLongestMs) count *= 2;
  }
}

Result<ClockCheck> check_samples(double own_ms, const ClockCheckOptions& options, const Batch& batch, double one_ms) {
  const auto delay_ns = [&] {
    return measure::run_delay_ns() + (options.process ? measure::run_delay_ns(options.process) : 0);
  };
  ClockCheck out{own_ms, 1e300, {}, launches_in(options.is_on_device ? 5 : 1, one_ms), false};
  const int64_t start = measure::kernel_ns();
  do {
    const int64_t delayed = delay_ns();
    auto timed = batch(out.count);
    if (!timed) return std::unexpected(timed.error());
    const double delay_ms = static_cast<double>(delay_ns() - delayed) * 1e-6 / out.count;
    out.batch_ms = std::min(out.batch_ms, timed->outside_ms - delay_ms);
    out.agree = is_within(own_ms, kSamples, out.batch_ms - trip_ms(options, out.count));
  } while (!out.agree && measure::kernel_ns() - start < options.patience_ns);
  return out;
}

}  // namespace

TimedBatch timed_batch(double outside_ms, std::span<const double> told) {
  if (told.empty()) return {outside_ms, {}, {}};
  const double mean = std::accumulate(told.begin(), told.end(), 0.0) / static_cast<double>(told.size());
  return {outside_ms, mean, measure::median(measure::sorted(told))};
}

Result<ClockCheck> check_clock(double own_ms, const ClockCheckOptions& options, const Batch& batch) {
  // How many launches are short is asked of the clock outside, in two steps: one launch of a worker is mostly its
  // request.
  auto timed = batch(1);
  if (timed) timed = batch(launches_in(5, timed->outside_ms));
  if (!timed) return std::unexpected(timed.error());
  const bool tells_each = options.is_remote && !options.is_on_device && timed->told_ms;
  return (tells_each ? check_told : check_samples)(own_ms, options, batch, timed->outside_ms);
}

std::string disagreement(const ClockCheck& check) {
  // Told truly of launches in a row, and not of single ones.
  const bool is_of_singles = check.told_ms && is_within(*check.told_ms, kTold, check.batch_ms);
  return fmt::format("{}: its clock says {:.3g} ms a launch, {} in a row took {:.3g} ms each", kTimerDisagrees,
                     is_of_singles ? check.own_ms : check.told_ms.value_or(check.own_ms), check.count, check.batch_ms);
}

nlohmann::json to_json(const ClockCheck& check) {
  nlohmann::json json{
      {"batch_ms", check.batch_ms}, {"batch_count", check.count}, {"hot_ms", check.own_ms}, {"agree", check.agree}};
  if (check.told_ms) json["told_ms"] = *check.told_ms;
  return json;
}

ClockCheck parse_clock_check(const nlohmann::json& json) {
  ClockCheck check{json.value("hot_ms", 0.0),
                   json.value("batch_ms", 0.0),
                   {},
                   json.value("batch_count", 0),
                   json.value("agree", false)};
  if (json.contains("told_ms")) check.told_ms = json.value("told_ms", 0.0);
  return check;
}

}  // namespace tilewright::bench
