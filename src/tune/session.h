// One tuning: search, trials in killable children, paired runoff, confirmation of the winner in fresh processes.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/process_summary.h"
#include "tune/runner.h"
#include "tune/runoff.h"
#include "tune/search.h"
#include "tune/trial_log.h"
#include "tune/trial_process.h"

namespace tilewright::tune {

struct TuneOptions {
  int64_t runs = 0;  ///< 0: the whole space
  uint64_t seed = 1;
  double budget_s = 0;  ///< 0: no limit
  size_t top = 5;       ///< contestants of the runoff beside the incumbent
  int jobs = 2;         ///< compiles at once
  int confirm_processes = 6;
  measure::PairedOptions paired;
  TrialLimits limits;
  std::optional<Config> incumbent;  ///< must be a point of the space; the default point when absent
  std::filesystem::path log;        ///< tune.jsonl
};

struct TuneOutcome {
  std::vector<Trial> trials;  ///< one per tried point, in the order of the trials; the last word on each
  int64_t resumed = 0;        ///< of them found in the log
  bool out_of_budget = false;
  std::optional<size_t> incumbent;
  RunoffResult runoff;
  Trial winner;                       ///< its trial; samples are those of the search
  measure::ProcessSummary confirmed;  ///< of the winner, in fresh processes
  measure::ProcessSummary
      confirmed_default;  ///< of the default point, the same way; empty when it has no correct result
  double spent_ms = 0;    ///< wall time of everything, earlier sessions of the log included
  double compile_ms = 0;  ///< sum over trials
};

struct TuneProgress {
  int64_t done = 0, planned = 0;
  double spent_s = 0;
  const Trial* trial = nullptr;
};

/// E1654 when no configuration gives a correct result; the trials are in the log.
Result<TuneOutcome> tune(const Space& space, TrialRunner& runner, const TuneOptions& options,
                         const std::function<void(const TuneProgress&)>& progress = {});

/// Median of the medians of fresh processes; E1654 with the reason when one does not end correct.
Result<measure::ProcessSummary> measure_in_processes(const Space& space, TrialRunner& runner, size_t point,
                                                     int processes, const TrialLimits& limits, Trial* last = nullptr);

/// How many trials ended in each state.
std::map<std::string, int64_t> count_states(const std::vector<Trial>& trials);

}  // namespace tilewright::tune
