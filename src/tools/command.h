// How a subcommand joins the `tilewright` command: one row in commands.def, one source file with one function.
//
//   Run add_<name>(CLI::App& app, Session& session);
//
// It declares its options on `app` (with examples in `app.footer`) and returns what runs when the user picks it.
// Options live in a struct kept alive by the returned function. A failure is a Diagnostic; main prints it and chooses
// the exit code. Files in src/tools/ build without the compiler; those which need it live in src/tools/compiler/ and
// have a TW_COMPILER_COMMAND row.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "bench/oracle/workload.h"
#include "candidate/kinds.h"
#include "tools/exit_code.h"
#include "tools/kernel_tuning.h"

namespace tilewright::tools {

enum class Group { Write, Measure, Decide, Hidden };

/// A kernel of a `.tile` file with the workload it states itself.
struct OfferedKernel {
  std::string spelling;
  std::optional<bench::Workload> workload;
  std::string why_not;  ///< there is none: no reference that can be checked, or no example
};

/// Times without a check, for the screen only.
struct UncheckedTimes {
  double compile_ms = 0;
  std::vector<double> warm_ms, hot_ms;  ///< with and without a flush of the caches before each launch
};

/// What only a build with the compiler can do; both empty without it.
struct KernelServices {
  /// `dims` replace sizes of the kernels' examples.
  std::function<Result<std::vector<OfferedKernel>>(const std::string& spelling,
                                                   const std::map<std::string, int64_t>& dims)>
      offers;
  std::function<Result<UncheckedTimes>(const std::string& spelling, int threads, uint64_t seed)> time_unchecked;
};

/// What every subcommand shares: how the process was started and which kinds of candidates it can open.
struct Session {
  std::string executable;            ///< absolute path of this binary; stages run in children of it
  std::vector<std::string> command;  ///< argv, as it is written into records
  candidate::WorkerOptions workers;  ///< where ready workers are and what runs them
  candidate::Kinds kinds;            ///< "lib", "worker", and our own kernels when built with the compiler
  KernelServices kernels;
  std::vector<std::string> default_candidates;  ///< of a bench without arguments
  std::vector<std::string> default_references;  ///< rivals tried when none are named
  std::vector<std::string> device_references;   ///< the same on a CUDA device
  KernelTuner tune_kernel;                      ///< empty when built without the compiler
};

using Run = std::function<Result<ExitCode>()>;
using AddCommand = Run (*)(CLI::App& app, Session& session);

#define TW_COMMAND(name, group, summary) Run add_##name(CLI::App& app, Session& session);
#define TW_COMPILER_COMMAND(name, group, summary) Run add_##name(CLI::App& app, Session& session);
#include "tools/commands.def"
#undef TW_COMMAND
#undef TW_COMPILER_COMMAND

}  // namespace tilewright::tools
