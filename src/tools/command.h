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
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "candidate/kinds.h"
#include "tools/exit_code.h"

namespace tilewright::tools {

enum class Group { Write, Measure, Decide, Hidden };

/// What every subcommand shares: how the process was started and which kinds of candidates it can open.
struct Session {
  std::string executable;                       ///< absolute path of this binary; stages run in children of it
  std::vector<std::string> command;             ///< argv, as it is written into records
  candidate::WorkerOptions workers;             ///< where ready workers are and what runs them
  candidate::Kinds kinds;                       ///< "lib", "worker", and our own kernels when built with the compiler
  std::vector<std::string> default_candidates;  ///< of a bench without arguments
  std::vector<std::string> default_references;  ///< rivals tried when none are named
};

using Run = std::function<Result<ExitCode>()>;
using AddCommand = Run (*)(CLI::App& app, Session& session);

#define TW_COMMAND(name, group, summary) Run add_##name(CLI::App& app, Session& session);
#define TW_COMPILER_COMMAND(name, group, summary) Run add_##name(CLI::App& app, Session& session);
#include "tools/commands.def"
#undef TW_COMMAND
#undef TW_COMPILER_COMMAND

}  // namespace tilewright::tools
