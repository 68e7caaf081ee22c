// `tilewright bench --suite NAME`: many kernels against their rivals in one table.
#pragma once

#include "tools/command.h"

namespace tilewright::tools {

struct SuiteFlags {
  std::string name;
  std::string filter;
  int rounds = 0;  ///< 0: what is usual for the suite
  double row_limit_s = 20;
  double total_limit_s = 0;  ///< 0: none
};

/// --suite, --filter, --rounds, --row-seconds, --suite-seconds.
void add_suite_options(CLI::App& app, SuiteFlags& flags);

struct SuiteRun {
  std::vector<int> threads;  ///< empty: one, then all of this process
  uint64_t seed = 1;
  std::string out;  ///< folder of suite-NAME.json
  std::string markdown_file;
  bool json = false;
  bool resume = false;
  bool show_progress = true;
  int64_t timeout_ms = 120'000;
};
Result<ExitCode> run_suite_command(const SuiteFlags& flags, const SuiteRun& run, const Session& session);

}  // namespace tilewright::tools
