// The suite cpu-lifecycle: what our own compiler and run-time cost, each in fresh processes.
//
//   compile   the compile call with an empty cache, LLVM opened before; median of `processes` processes
//   load      the same call with the cache filled
//   start     fork and exec to the first result, cache filled; the same for a process that opens nothing stands beside
//   it peak      resident peak of the whole process that compiled, the harness and the data included execute   one
//   launch of an element-wise kernel on one element: own work, argument checks and kernel together
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "measure/order_statistics.h"

namespace tilewright::bench {

inline constexpr std::string_view kLifecycleSuite = "cpu-lifecycle";

struct LifecycleOptions {
  std::string executable;
  std::string filter;
  int processes = 20;
  uint64_t seed = 1;
  bool show_progress = true;
  int64_t timeout_ms = 120'000;
};

struct LifecycleRow {
  std::string_view kernel, workload;
  double goal_ms = 0;
  std::string not_run;
  std::vector<double> compile_ms, init_ms, load_ms, start_ms, peak_mib;
};

struct LifecycleReport {
  std::vector<LifecycleRow> rows;
  std::vector<double> empty_start_ms;  ///< a process of ours that opens nothing
  std::vector<double> execute_ns;
  std::string execute_not_run;
};

Result<LifecycleReport> run_lifecycle_suite(const LifecycleOptions& options);
std::string render_lifecycle(const LifecycleReport& report, bool markdown);
nlohmann::json to_json(const LifecycleReport& report);

}  // namespace tilewright::bench
