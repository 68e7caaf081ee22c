// The clauses of an objective against the evidence, each by itself: holds, violated or open, with the cells it rests on
// and the command that would close it.
//
// A pure function of objective, evidence and what-if multipliers; `flips.h` asks it again with one number turned.
#pragma once

#include <optional>
#include <vector>

#include "bench/decision/decide.h"

namespace tilewright::decision {

/// What-if multipliers on the evidence.
struct WhatIf {
  Scale scale;
  double peak = 1;
  double hours = 1;
};

struct Gain {
  double value = 0, low = 0, high = 0;
};

struct Judgement {
  std::vector<Clause> clauses;
  std::optional<Gain> gain;
  BreakEvens break_evens;
};

Judgement judge(const Objective& objective, const Evidence& evidence, const WhatIf& what_if = {});

/// REJECT when one is violated, else INSUFFICIENT when one is open, else ADOPT.
Verdict verdict_of(const std::vector<Clause>& clauses);

}  // namespace tilewright::decision
