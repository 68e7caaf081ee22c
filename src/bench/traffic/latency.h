// Latency summaries of a service run, simulated or real: windows of misses, time to steady state.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "bench/traffic/trace.h"

namespace tilewright::traffic {

constexpr int64_t kSteadyWindow = 500;
constexpr int64_t kSteadyMisses = 5;

/// Index of the first request after which every window of 500 consecutive requests holds fewer than 5 misses; nullopt
/// when the last window still has 5 or more, or the trace is shorter than one window.
std::optional<int64_t> steady_index(std::span<const uint8_t> missed);

/// Misses per consecutive, disjoint window of 500 requests, as a share; the last window may be shorter.
std::vector<double> miss_rates(std::span<const uint8_t> missed);

}  // namespace tilewright::traffic
