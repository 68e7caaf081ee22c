// Runs a suite: one fresh process per row, all contenders of the row in it, launched in turn.
//
// Guarantees: nobody is timed whose result was not accepted; a row that cannot run says why and the rest go on. A
// finished row is written to `record` at once, and `resume` takes what the same program recorded there under the same
// options.
#pragma once

#include <filesystem>

#include "bench/suite/suite_result.h"

namespace tilewright::bench {

struct SuiteOptions {
  std::string executable;
  Suite suite;
  std::vector<int> threads;  ///< each row runs once per entry
  std::string filter;        ///< rows whose "workload dtypes" contains this text; empty: all
  int rounds = 30;
  double row_limit_s = 20;       ///< a row takes fewer rounds rather than much longer
  double total_limit_s = 0;      ///< all rows together, as nearly as a few rounds each allow; 0: no limit
  std::filesystem::path record;  ///< JSON lines; empty: none
  std::string program;           ///< what must be equal for a recorded row to count: a build
  bool resume = false;
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

/// Seconds of timing for the next of `rows_left` rows when `left_s` of the whole are left.
double row_limit_s(const SuiteOptions& options, double left_s, size_t rows_left);

/// E1600 when no row has the filter's text.
Result<SuiteReport> run_suite(const SuiteOptions& options);

}  // namespace tilewright::bench
