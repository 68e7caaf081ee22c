// Several rows of a suite on a device in one process: their rivals import and open once. Contenders of a row are
// launched in random order, steady and after a rest, or one by one with the caches flushed.
//
// Guarantees: nobody is timed whose result was not accepted, and every result is judged again after the timing, on its
// last launch; each row is told as soon as it is done (an event "part"), so a fault loses one row.
#pragma once

#include "bench/stage_setup.h"

namespace tilewright::bench {

/// A row of `request.races` becomes a part: "row", "contenders" (in the order asked for: "name", "version",
/// "libraries", then "steady_ms" and "burst_ms", or "flushed_ms", one value per round; or "refused" or "wrong"),
/// "flops", "bytes".
Result<nlohmann::json> run_race(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel);

/// `request.contenders` are one candidate on many workloads, none of them seen before: each is compiled, loaded and
/// launched once, one after another, from the first compile call to the last result; then every result is judged.
/// Fields: "total_ms", "each_ms", "compiles", "cache_hits", "wrong" (workloads).
Result<nlohmann::json> run_rare(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel);

/// What a launch costs the host, in ns: "launch_ns" (of the candidate) and "driver_ns" (the driver's launch of an empty
/// kernel with as many bytes of parameters), one value per batch of launches, taken in turn.
Result<nlohmann::json> run_launch_cost(const StageRequest& request, const candidate::Kinds& kinds,
                                       StageChannel& channel);

}  // namespace tilewright::bench
