// The options that say what is computed and where: shared by bench, compare and roofline.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "bench/oracle/workload.h"

namespace tilewright::tools {

struct WorkloadOptions {
  std::vector<std::string> keys;
  std::string dtype = "f32";
  std::string lengths;  ///< "q,k;q,k;…"
  std::string device = "cpu";
  int threads = 0;  ///< 0: all the process may use
  uint64_t seed = 1;
};

void add_workload_options(CLI::App& app, WorkloadOptions& options);
Result<std::vector<bench::Workload>> parse_workloads(const WorkloadOptions& options);
int thread_count(const WorkloadOptions& options);

}  // namespace tilewright::tools
