// The options that say what is computed and where: shared by bench, compare and roofline.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "bench/oracle/workload.h"
#include "tools/command.h"

namespace tilewright::tools {

struct WorkloadOptions {
  std::vector<std::string> keys;  ///< or kernel files, whose own reference is meant
  std::vector<std::string> dims;  ///< "M=64,N=32": sizes of those kernels
  std::string dtype = "f32";
  std::string lengths;  ///< "q,k;q,k;…"
  std::string device = "cpu";
  int threads = 0;  ///< 0: all the process may use
  uint64_t seed = 1;
};

void add_workload_options(CLI::App& app, WorkloadOptions& options);
/// A key that names a `.tile` file is what the kernels of that file state themselves.
Result<std::vector<bench::Workload>> parse_workloads(const WorkloadOptions& options, const Session& session);
/// "M=64,N=32" and more of them. E1804.
Result<std::map<std::string, int64_t>> parse_sizes(const std::vector<std::string>& texts);
/// "kernels/softmax.tile", "tile:mine.tile:swiglu?T=f16".
bool names_kernel(const std::string& text);
int thread_count(const WorkloadOptions& options);

}  // namespace tilewright::tools
