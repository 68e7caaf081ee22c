// Keep the reference, adopt pinned, adopt adaptive: when each is best, its main risk, and this case's numbers.
#pragma once

#include <vector>

#include "bench/decision/decide.h"

namespace tilewright::decision {

std::vector<PolicyOption> policy_options(const Objective& objective, const Evidence& evidence,
                                         const Decision& decision);

}  // namespace tilewright::decision
