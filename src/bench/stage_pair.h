// Two candidates resident in one process, launched in turn: the only fair way to say which is faster.
#pragma once

#include "bench/stage_setup.h"

namespace tilewright::bench {

/// First the candidate against a second copy of itself (the A/A gate, 20 rounds or more), then against the rival, in
/// the order of a random cyclic Latin square. The number of rounds comes from the pilot's noise. Fields: "a", "b" (ms
/// per round), "aa" (two lists), "seed".
Result<nlohmann::json> run_pair(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel);

}  // namespace tilewright::bench
