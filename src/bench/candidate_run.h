// One candidate on one workload, from the check to the peak: which children run, in which order, and what is recorded.
#pragma once

#include "bench/harness.h"
#include "bench/progress.h"
#include "bench/record/cell_log.h"
#include "bench/reference_selection.h"
#include "bench/stage_runner.h"

namespace tilewright::bench {

struct RunContext {
  const BenchOptions& options;
  CellLog& log;
  const StageRunner& runner;
  Progress& progress;
  std::string environment;
  Roofline roofline;
  ReferenceSelection references;  ///< of the present workload
  std::string device_name;
};

/// The machine's ceilings, measured in a child of their own.
Result<Roofline> find_roofline(const BenchOptions& options);

/// An error is a failure of the harness (a full disk); a candidate's own failures are cells.
Result<Outcome> run_candidate(RunContext& context, const Workload& workload, const std::string& spelling,
                              bool is_reference);

/// The paired comparison, appended to `outcome`. `best` may be null: then the ratio is not-run.
Status run_ratio(RunContext& context, const Workload& workload, Outcome& outcome, const Outcome* best);

}  // namespace tilewright::bench
