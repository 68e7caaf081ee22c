// What there is to tune about a `.tile` kernel, read from the kernel itself: its parameters are the space, its defaults
// the incumbent, its `where` clauses and the planner prune, its `reference` is the oracle.
//
// Only types: src/tools/compiler/kernel_tuning.cpp fills them, so that `tune` builds without the compiler.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/oracle/workload.h"
#include "tune/config.h"

namespace tilewright::tools {

struct KernelTuningRequest {
  std::string path;
  std::string kernel;                         ///< empty: the only one of the file
  std::map<std::string, std::string> params;  ///< fixed ones
  std::map<std::string, int64_t> dims;        ///< what is left open comes from the kernel's example
};

struct KernelTuning {
  std::string candidate;  ///< "tile:FILE.tile:KERNEL?T=f32"
  bench::Workload workload;
  nlohmann::json space;  ///< as Space::from_json takes it
  /// Why a point is not tried: a `where` it breaks, what the planner says, or that an earlier point is the same
  /// program.
  std::function<std::optional<std::string>(const tune::Config&)> prune;
  std::vector<std::string> fixed;  ///< parameters that are not tuned, each with the reason
};

using KernelTuner = std::function<Result<KernelTuning>(const KernelTuningRequest&)>;

/// True for "kernels/matmul.tile" (a kernel file), false for "tile:…", "lib:…" and the like.
bool is_kernel_file(const std::string& candidate);

}  // namespace tilewright::tools
