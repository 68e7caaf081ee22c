#include "bench/stage_sustained.h"

#include <algorithm>
#include <thread>

#include "bench/stage_timing.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

constexpr double kUntimedMs = 200, kTimedMs = 250;
constexpr auto kRest = std::chrono::milliseconds(250);
constexpr int kBurst = 5;

int launches_in(double ms, double one_ms) {
  return std::clamp(static_cast<int>(ms / std::max(one_ms, 1e-4)), 1, 1'000'000);
}

}  // namespace

Result<double> steady_ms(LaunchTimer& timer, double one_ms, bool in_graphs) {
  if (auto untimed = timer.span(launches_in(kUntimedMs, one_ms)); !untimed) return untimed;
  const int count = launches_in(kTimedMs, one_ms);
  return in_graphs ? timer.span_in_graphs(count) : timer.span(count);
}

Result<double> burst_ms(LaunchTimer& timer, bool is_on_device) {
  std::this_thread::sleep_for(kRest);
  if (is_on_device) return timer.span(kBurst);  // one by one, each would wait for the host
  std::vector<double> samples;
  for (int i = 0; i < kBurst; ++i) {
    auto ms = timer.sample(false);
    if (!ms) return ms;
    samples.push_back(*ms);
  }
  return measure::median(measure::sorted(samples));
}

namespace {

/// The least cost of a launch: the same candidate with nothing to do. An operator whose extents cannot be 1 has none.
Result<double> launch_floor(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  auto workload = requested_workload(request);
  if (!workload) return std::unexpected(workload.error());
  workload->lengths.clear();
  for (auto& [name, extent] : workload->dims) {
    if (name != "D" && name != "DV") extent = 1;
  }
  StageRequest tiny = request;
  tiny.workload = workload_key(*workload);
  tiny.lengths.clear();
  auto ready = make_ready(tiny, tiny.candidate, kinds, channel);
  if (!ready) return std::unexpected(ready.error());
  LaunchTimer timer(*ready, channel, request.seed);
  if (auto awake = timer.warm_up(); !awake) return std::unexpected(awake.error());
  double least = 1e300;
  for (int i = 0; i < 20; ++i) {
    auto ms = timer.batch(ready->candidate->is_remote() ? 20 : 500);
    if (!ms) return ms;
    least = std::min(least, *ms);
    channel.step("floor");
  }
  return least;
}

}  // namespace

Result<json> run_sustained(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel) {
  json out{{"steady_ms", json::array()}, {"burst_ms", json::array()}};
  {
    auto ready = make_ready(request, request.candidate, kinds, channel);
    if (!ready) return std::unexpected(ready.error());
    LaunchTimer timer(*ready, channel, request.seed);
    if (auto awake = timer.warm_up(); !awake) return std::unexpected(awake.error());
    auto one_ms = timer.span(3);
    if (!one_ms) return std::unexpected(one_ms.error());
    for (int round = 0; round < request.rounds; ++round) {
      auto steady = steady_ms(timer, *one_ms);
      if (!steady) return std::unexpected(steady.error());
      channel.step("steady");
      if (ready->session) out["device_clocks"].push_back(ready->session->clocks());
      auto burst = burst_ms(timer, ready->is_on_device);
      if (!burst) return std::unexpected(burst.error());
      channel.step("burst");
      out["steady_ms"].push_back(*steady);
      out["burst_ms"].push_back(*burst);
    }
    if (ready->session) {
      out["host_ms"] = json::array();
      for (int i = 0; i < 50; ++i) {
        auto host_ms = timer.host_sample();
        if (!host_ms) return std::unexpected(host_ms.error());
        out["host_ms"].push_back(*host_ms);
      }
    }
  }
  auto floor_ms = launch_floor(request, kinds, channel);
  if (floor_ms)
    out["floor_ms"] = *floor_ms;
  else
    out["floor_refused"] = floor_ms.error().message;
  return out;
}

}  // namespace tilewright::bench
