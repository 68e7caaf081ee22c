// Judges cases in a child process, so that a crash or a hang of what is tested is a verdict like any other.
#pragma once

#include <functional>
#include <vector>

#include "fuzz/judge.h"

namespace tilewright::fuzz {

struct IsolatedOptions {
  int seconds_per_case = 30;
  int64_t cases_per_child = int64_t{1} << 40;
  bool ends_at_failure = false;  ///< a child that reports a failure judges no more cases
};

/// Calls `judge_one(i)` for i in [0, count) in a child, and `done(i, judgement)` here for each, in order. When the
/// child dies on a case, that case is Crashed or Hung and a new child goes on after it. `done` returns false to stop.
void judge_isolated(int64_t count, const std::function<Judgement(int64_t)>& judge_one,
                    const std::function<bool(int64_t, const Judgement&)>& done, const IsolatedOptions& options = {});

}  // namespace tilewright::fuzz
