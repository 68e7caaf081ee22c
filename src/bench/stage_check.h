// Correctness inside a stage child: the oracle of bench/oracle applied to an opened candidate.
#pragma once

#include "bench/stage_setup.h"

namespace tilewright::bench {

/// The whole check: fresh inputs in the same buffers, poison, margins, references for the relative rule, fuzz shapes.
/// Fields: "accepted", "reason", "detail".
Result<nlohmann::json> run_check(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel);

/// The outputs as they stand against the inputs as they stand. Fields: "accepted", "reason", "detail".
Result<nlohmann::json> check_present_outputs(Ready& ready);

}  // namespace tilewright::bench
