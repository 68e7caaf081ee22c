// Which references a workload is judged against: the fastest right operator of any framework, and the fastest library.
//
// Every reference that opens is checked and timed in one process, in turn; the fastest of each class then goes through
// the whole life beside the candidate. All that were tried stay listed with their times, or with why they took no part.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/stage_runner.h"

namespace tilewright::bench {

struct ReferenceSelection {
  std::vector<std::string> chosen;  ///< spellings: the framework's first; at most two
  nlohmann::json tried;             ///< one per reference: candidate, name, version, ms or why not, chosen
  std::string text;                 ///< the same in one line; empty when there was nothing to try
};

/// A framework's operator is a worker's; every other spelling is a library.
bool is_framework(const std::string& spelling);

/// From the result of a contest (stage_contest.h). Pure.
ReferenceSelection select_references(const nlohmann::json& contest);

/// References that are candidates themselves are left out.
Result<ReferenceSelection> try_references(const BenchOptions& options, const StageRunner& runner,
                                          const Workload& workload, const std::string& cache_dir);

}  // namespace tilewright::bench
