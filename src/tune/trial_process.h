// Trials in child processes: compiled side by side, then checked and timed one at a time, so that no compiler runs
// beside a measurement. A child that crashes or hangs is killed and recorded; nothing it does reaches the tuner.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "measure/stopping.h"
#include "tune/runner.h"
#include "tune/runoff.h"
#include "tune/space.h"
#include "tune/trial.h"

namespace tilewright::tune {

struct TrialLimits {
  double compile_timeout_s = 60;
  double run_timeout_s = 20;  ///< check and samples together
  measure::StopRule stop{.min_samples = 10, .min_total_ms = 50, .precision = 0.01, .timeout_ms = 2000};
  uint64_t seed = 1;  ///< of the check before timing; the check after uses seed + 1
  int runoff_rounds = 52;
};

/// Tries the points, up to `jobs` compiling at once. `done` is called for each in the order given.
Status run_trials(TrialRunner& runner, const Space& space, const std::vector<size_t>& points, int jobs,
                  const TrialLimits& limits, const std::function<Status(const Trial&)>& done);

struct RunoffTimes {
  std::vector<Contestant> contestants;  ///< those that lived through all rounds, in the order given
  std::vector<Trial> lost;              ///< those that died or were wrong this time
};

/// All contestants resident in one child, launched in a random cyclic Latin square. One that dies or is wrong is
/// removed and the others start again.
Result<RunoffTimes> run_runoff(TrialRunner& runner, const Space& space, std::vector<size_t> points,
                               const TrialLimits& limits);

}  // namespace tilewright::tune
