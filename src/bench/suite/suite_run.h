// Runs a suite: one fresh process per row, all contenders of the row in it, launched in turn.
//
// Guarantees: nobody is timed whose result was not accepted; a row that cannot run says why and the rest go on.
#pragma once

#include "bench/suite/suite_result.h"

namespace tilewright::bench {

struct SuiteOptions {
  std::string executable;
  Suite suite;
  std::vector<int> threads;  ///< each row runs once per entry
  std::string filter;        ///< rows whose "workload dtypes" contains this text; empty: all
  int rounds = 30;
  double row_limit_s = 20;  ///< a row takes fewer rounds rather than much longer
  uint64_t seed = 1;
  bool show_progress = true;
  int64_t timeout_ms = 120'000;
};

struct SuiteReport {
  Suite suite;
  std::vector<int> threads;
  std::vector<SuiteRow> rows;
  uint64_t seed = 1;
};

/// E1600 when no row has the filter's text.
Result<SuiteReport> run_suite(const SuiteOptions& options);

}  // namespace tilewright::bench
