// Several candidates resident in one process, launched in turn in random order, each sample with the ceiling timed
// beside it.
#pragma once

#include "bench/stage_setup.h"

namespace tilewright::bench {

/// Fields: "seed", "launches" (per sample), and "contenders", one per contender of the request, each with "candidate"
/// (spelling), and either "refused" (why it takes no part) or "name", "version", "libraries", "ms" and "ceiling" (one
/// value per round each). Nobody is timed whose outputs the oracle did not accept, before and after: "wrong" says why.
Result<nlohmann::json> run_contest(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel);

}  // namespace tilewright::bench
