// How much is spent on each stage: quick for a first look (it can reject, never adopt), ci for every commit, full for a
// decision.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "measure/stopping.h"

namespace tilewright::bench {

struct Budget {
  std::string name = "full";
  int import_processes = 10;
  double import_min_ms = 3000;  ///< processes are added until so much time was sampled
  int compile_processes = 6;    ///< of the cold compile and of the load from cache
  int warm_processes = 6;
  measure::StopRule warm;
  measure::StopRule hot;  ///< the same loop without the flush
  int ratio_rounds = 52;  ///< of the paired comparison with the best rival; more after the pilot
  int ratio_rounds_limit = 400;
  int fuzz_shapes = 25;
  int sustained_rounds = 3;  ///< of steady and burst; 0: they are not run
  int roofline_repeats = 100;
};

/// "quick", "ci" or "full"; "selftest" is the smallest, for toys.
std::optional<Budget> find_budget(std::string_view name);

/// What the life of one candidate takes, roughly, on an idle machine; a reference skips steady, burst and the pairs.
double expected_ms(const Budget& budget, bool is_reference);

}  // namespace tilewright::bench
