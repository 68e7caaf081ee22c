// What would flip a verdict: one number of the case turned at a time, in both directions, until the verdict changes.
#pragma once

#include <vector>

#include "bench/decision/decide.h"

namespace tilewright::decision {

std::vector<Flip> find_flips(const Objective& objective, const Evidence& evidence, Verdict now);

}  // namespace tilewright::decision
