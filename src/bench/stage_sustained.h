// How long one launch takes when launches never stop, when there are few of them after a rest, and when there is next
// to nothing to do: the three numbers that warm_ms hides.
#pragma once

#include "bench/stage_timing.h"

namespace tilewright::bench {

/// `request.rounds` rounds, after each other: steady (0.2 s of launches untimed, then 0.25 s as one batch) and burst
/// (0.25 s idle, then five launches timed one by one). Then the same candidate on the same operator with every
/// extent 1. Fields: "steady_ms", "burst_ms" (one value per round), "floor_ms" or "floor_refused"; on a device
/// "host_ms", how long the host is busy with one launch.
Result<nlohmann::json> run_sustained(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel);

/// One round's steady time of a launch; `one_ms` is about what it takes.
Result<double> steady_ms(LaunchTimer& timer, double one_ms, bool in_graphs = false);
Result<double> burst_ms(LaunchTimer& timer, bool is_on_device);

}  // namespace tilewright::bench
