// The `tilewright` command: parses the command line, runs one subcommand, prints its failure, returns its exit code.
#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>

#include "adapters/rival/rivals.h"
#include "base/closest.h"
#include "tools/command.h"
#ifdef TILEWRIGHT_HAVE_COMPILER
#include "adapters/tile/tile_candidate.h"
#include "tools/compiler/kernel_services.h"
#include "tools/compiler/kernel_tuning.h"
#endif

namespace tilewright::tools {
namespace {

struct Row {
  const char* name;
  Group group;
  const char* summary;
  AddCommand add;
};

constexpr Row kCommands[] = {
#define TW_COMMAND(name, group, summary) {#name, Group::group, summary, add_##name},
#ifdef TILEWRIGHT_HAVE_COMPILER
#define TW_COMPILER_COMMAND(name, group, summary) TW_COMMAND(name, group, summary)
#else
#define TW_COMPILER_COMMAND(name, group, summary)
#endif
#include "tools/commands.def"
#undef TW_COMMAND
#undef TW_COMPILER_COMMAND
};

const char* title(Group group) {
  switch (group) {
    case Group::Write: return "Write a kernel";
    case Group::Measure: return "Measure any kernel";
    case Group::Decide: return "Decide whether to adopt it";
    case Group::Hidden: return "";
  }
  return "";
}

/// The ready workers lie beside an installed binary, or in the source tree the binary was built from.
candidate::WorkerOptions worker_options(const std::filesystem::path& executable) {
  candidate::WorkerOptions options;
  const auto prefix = executable.parent_path().parent_path();
  for (const auto& folder : {prefix / "share/tilewright/workers", prefix.parent_path().parent_path() / "workers"}) {
    std::error_code error;
    if (options.folder.empty() && std::filesystem::is_directory(folder, error)) options.folder = folder;
  }
  const auto own_python = prefix.parent_path() / "python/bin/python3";  // made by scripts/references.sh
  std::error_code error;
  if (std::filesystem::exists(own_python, error)) options.python = own_python;
  if (const char* python = std::getenv("TILEWRIGHT_PYTHON")) options.python = python;
  return options;
}

/// "`rnu` is not a command. Did you mean `run`?", or nothing.
std::string unknown_command(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const std::string word = argv[1];
  std::vector<std::string> known;
  for (const Row& row : kCommands) {
    if (row.name == word) return {};
    if (row.group != Group::Hidden) known.emplace_back(row.name);
  }
  const std::string near = closest(word, known);
  return fmt::format("`{}` is not a command.{}", word, near.empty() ? "" : fmt::format(" Did you mean `{}`?", near));
}

int run_command_line(int argc, char** argv) {
  CLI::App app{"Tilewright: write AI kernels at tile granularity, and judge any kernel over its whole life",
               "tilewright"};
  app.set_version_flag("--version", "tilewright " TILEWRIGHT_VERSION);
  app.require_subcommand(1);
  app.footer("Start with:  tilewright doctor   |   tilewright COMMAND --help");
  Session session;
  session.executable = std::filesystem::read_symlink("/proc/self/exe").string();
  session.command.assign(argv, argv + argc);
  session.workers = worker_options(session.executable);
  session.kinds = candidate::built_in_kinds(session.workers);
  adapters::add_rivals(session.kinds, {session.workers.python});
#ifdef TILEWRIGHT_HAVE_COMPILER
  adapters::add_tile_kind(session.kinds);
  add_kernel_services(session);
  session.tune_kernel = tune_kernel;
#endif
  session.default_candidates = {"worker:onnxruntime"};
  session.default_references = {"worker:onnxruntime",
                                "worker:onnxruntime?backend=fused",
                                "worker:torch",
                                "worker:numpy",
                                "rival:openblas",
                                "rival:onednn",
                                "rival:blis",
                                "rival:attention",
                                "rival:attention-blocked"};
  session.device_references = {"worker:torch", "worker:torch?backend=cudnn", "worker:triton", "rival:cublaslt"};
  std::array<std::pair<CLI::App*, Run>, std::size(kCommands)> commands;
  for (size_t i = 0; i < std::size(kCommands); ++i) {
    CLI::App* sub = app.add_subcommand(kCommands[i].name, kCommands[i].summary)->group(title(kCommands[i].group));
    commands[i] = {sub, kCommands[i].add(*sub, session)};
  }
  if (const auto message = unknown_command(argc, argv); !message.empty()) {
    fmt::print(stderr, "{}\nRun with --help for more information.\n", message);
    return static_cast<int>(ExitCode::Usage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::Usage);
  }
  for (auto& [sub, run] : commands) {
    if (!sub->parsed()) continue;
    const Result<ExitCode> outcome = run();
    if (outcome) return static_cast<int>(*outcome);
    fmt::print(stderr, "{}", render(outcome.error()));
    return static_cast<int>(exit_code(outcome.error()));
  }
  return static_cast<int>(ExitCode::Usage);
}

}  // namespace
}  // namespace tilewright::tools

namespace {

using tilewright::tools::ExitCode;

/// What was printed has to have arrived: a full disk or a closed pipe behind standard output is a failure of the
/// command, whatever it found. The one place that asks, for every command.
int finish_output(int code) {
  std::cout.flush();
  errno = 0;
  const bool is_lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  if (!is_lost) return code;
  const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  const auto kind = is_full ? tilewright::DiagnosticCode::E3302 : tilewright::DiagnosticCode::E3301;
  const std::string why = errno != 0 ? std::strerror(errno) : "the output is incomplete";
  fmt::print(stderr, "error[{}]: cannot write standard output: {}\n  help: make room, or name a file with --out\n",
             tilewright::code_text(kind), why);
  return static_cast<int>(ExitCode::Internal);
}

int run_guarded(int argc, char** argv) {
  try {
    return tilewright::tools::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr,
               "error: out of memory: the sizes asked for do not fit this machine\n  help: give smaller sizes\n");
  } catch (const std::length_error&) {
    fmt::print(stderr,
               "error: out of memory: the sizes asked for do not fit any machine\n  help: give smaller sizes\n");
  } catch (const std::exception& defect) {
    // Printing throws when its output is lost; finish_output says so.
    if (std::ferror(stdout) != 0) return static_cast<int>(ExitCode::Internal);
    fmt::print(stderr,
               "error[E9001]: {}\n  help: this is a defect of tilewright, not of your input: please report it with the "
               "command and the file\n",
               defect.what());
    return static_cast<int>(tilewright::tools::ExitCode::Internal);
  }
  return static_cast<int>(ExitCode::Usage);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is a full disk: an error to report, not a death
  return finish_output(run_guarded(argc, argv));
}
