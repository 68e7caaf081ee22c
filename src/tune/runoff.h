// Who wins the paired runoff: a pure function of the times of all contestants in the same rounds.
//
// A contestant beats the incumbent when it is FASTER by the paired rule (measure/paired.h). Among those that do, the
// one with the least ratio leads; whoever it does not beat by the same rule ties with it, and of the tied the earliest
// in declared order wins. When nobody beats the incumbent, the incumbent stays. Without an incumbent all may lead.
#pragma once

#include <string>
#include <vector>

#include "measure/paired.h"

namespace tilewright::tune {

struct Contestant {
  size_t point = 0;                ///< position in declared order
  std::vector<double> samples_ms;  ///< one per round
};

struct RunoffRow {
  size_t point = 0;
  double median_ms = 0;
  measure::PairedResult against_incumbent;
  bool is_tied_with_winner = false;
};

struct RunoffResult {
  size_t winner = 0;  ///< a point
  bool incumbent_kept = false;
  std::string why;
  std::vector<RunoffRow> rows;  ///< the contestants in the order given
};

struct RunoffOptions {
  measure::PairedOptions paired;
  bool first_is_incumbent = true;
};

/// `contestants[0]` is what ratios are against; all have the same number of samples (>= 1).
RunoffResult judge_runoff(const std::vector<Contestant>& contestants, const RunoffOptions& options = {});

}  // namespace tilewright::tune
