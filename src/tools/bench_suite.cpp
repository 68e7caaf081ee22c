#include "tools/bench_suite.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "bench/doctor.h"
#include "bench/record/table_csv.h"
#include "bench/suite/hopper_suite.h"
#include "bench/suite/lifecycle_suite.h"
#include "bench/suite/suite_table.h"
#include "measure/machine.h"

namespace tilewright::tools {
namespace {

constexpr const char* kHopperSummary = "what our kernels reach on a Hopper GPU: speed, compile time, launch cost";
constexpr const char* kLifecycleSummary = "what our compiler and run time cost, in fresh processes";

Result<bench::Suite> named_suite(const std::string& name) {
  if (auto suite = bench::find_suite(name)) return *std::move(suite);
  std::string known =
      fmt::format("{} ({}); {} ({})", bench::kLifecycleSuite, kLifecycleSummary, bench::kHopperSuite, kHopperSummary);
  for (const bench::Suite& suite : bench::all_suites()) known += fmt::format("; {} ({})", suite.name, suite.summary);
  return fail(DiagnosticCode::E1600, fmt::format("--suite {}: there is no such suite", name), known);
}

std::vector<int> usual_threads() {
  const int all = measure::usable_cpus();
  return all > 1 ? std::vector<int>{1, std::min(all, 2)} : std::vector<int>{1};
}

/// A wrong result of ours outweighs everything; a suite with no timed row measured nothing.
ExitCode exit_code_of(const bench::SuiteReport& report) {
  bool wrong = false, timed = false;
  for (const bench::SuiteRow& row : report.rows) {
    timed |= row.is_timed();
    wrong |= !row.contestants.empty() && !row.ours().wrong.empty();
  }
  return wrong ? ExitCode::Incorrect : timed ? ExitCode::Ok : ExitCode::Insufficient;
}

/// What every suite leaves: a file of records, and a table or the same as JSON on the screen.
struct SuiteOutput {
  std::string name, table, markdown;
  nlohmann::json json;
};

Status write_output(SuiteOutput output, const SuiteRun& run, const Session& session, int threads) {
  const std::vector<std::string> warnings = bench::machine_warnings(threads);
  output.json["command"] = session.command;
  output.json["warnings"] = warnings;
  std::error_code error;
  std::filesystem::create_directories(run.out, error);
  const std::string file = fmt::format("{}/suite-{}.json", run.out, output.name);
  if (auto ok = bench::replace_file(file, output.json.dump(1) + "\n"); !ok) return ok;
  if (!run.markdown_file.empty()) {
    if (auto ok = bench::replace_file(run.markdown_file, output.markdown); !ok) return ok;
  }
  if (run.json) {
    fmt::print("{}\n", output.json.dump(2));
    return {};
  }
  fmt::print("{}", output.table);
  for (const std::string& warning : warnings) fmt::print("note: {}\n", warning);
  fmt::print("records: {}\nreproduce: {}\n", file, fmt::join(session.command, " "));
  return {};
}

/// Of its bytes: another build has another, a copy of it has the same.
std::string file_identity(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return to_hex(hash128(bytes));
}

Result<ExitCode> run_lifecycle_command(const SuiteFlags& flags, const SuiteRun& run, const Session& session) {
  bench::LifecycleOptions options;
  options.executable = session.executable;
  options.filter = flags.filter;
  options.processes = std::max(flags.rounds > 0 ? flags.rounds : 20, 1);
  options.seed = run.seed;
  options.show_progress = run.show_progress;
  options.timeout_ms = run.timeout_ms;
  auto report = bench::run_lifecycle_suite(options);
  if (!report) return std::unexpected(report.error());
  const bool measured = std::ranges::any_of(report->rows, [](const auto& row) { return !row.compile_ms.empty(); });
  SuiteOutput output{std::string(bench::kLifecycleSuite), bench::render_lifecycle(*report, false),
                     bench::render_lifecycle(*report, true), bench::to_json(*report)};
  if (auto written = write_output(std::move(output), run, session, 1); !written)
    return std::unexpected(written.error());
  return measured ? ExitCode::Ok : ExitCode::Insufficient;
}

Result<ExitCode> run_hopper_command(const SuiteFlags& flags, const SuiteRun& run, const Session& session) {
  bench::HopperOptions options;
  options.executable = session.executable;
  options.filter = flags.filter;
  options.record = std::filesystem::path(run.out) / "suite-hopper.jsonl";
  std::error_code error;
  std::filesystem::create_directories(run.out, error);
  options.program = file_identity(session.executable);
  options.resume = run.resume;
  if (flags.rounds > 0) options.rounds = options.processes = flags.rounds;
  options.seed = run.seed;
  options.show_progress = run.show_progress;
  options.timeout_ms = run.timeout_ms;
  auto report = bench::run_hopper_suite(options);
  if (!report) return std::unexpected(report.error());
  bool wrong = false, measured = false;
  for (const bench::HopperLine& line : bench::hopper_lines(*report)) {
    wrong |= line.ours.find("WRONG") != std::string::npos;
    measured |= line.state == "met" || line.state == "missed";
  }
  SuiteOutput output{std::string(bench::kHopperSuite), bench::render_hopper(*report, false),
                     bench::render_hopper(*report, true), bench::to_json(*report)};
  if (auto written = write_output(std::move(output), run, session, 1); !written)
    return std::unexpected(written.error());
  return wrong ? ExitCode::Incorrect : measured ? ExitCode::Ok : ExitCode::Insufficient;
}

}  // namespace

void add_suite_options(CLI::App& app, SuiteFlags& flags) {
  std::string names = fmt::format("{}, {}", bench::kHopperSuite, bench::kLifecycleSuite);
  for (const bench::Suite& suite : bench::all_suites()) names += fmt::format(", {}", suite.name);
  app.add_option("--suite", flags.name, "our kernels against every rival that is installed, in one table: " + names)
      ->type_name("NAME");
  app.add_option("--filter", flags.filter, "of a suite: only rows with this text, e.g. 2048 or bf16")
      ->type_name("TEXT");
  app.add_option("--rounds", flags.rounds,
                 "of a suite: samples of each contender, taken in turn (30; hopper 3), or fresh processes (20)")
      ->check(CLI::Range(1, 10000));
  app.add_option("--row-seconds", flags.row_limit_s, "of a suite: a row takes fewer rounds rather than longer")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--suite-seconds", flags.total_limit_s,
                 "of a CPU suite but cpu-lifecycle: about this long for all rows together, with fewer rounds each; "
                 "--resume goes on where an interrupted suite stopped")
      ->check(CLI::Range(1.0, 86400.0));
}

Result<ExitCode> run_suite_command(const SuiteFlags& flags, const SuiteRun& run, const Session& session) {
  if (flags.name == bench::kHopperSuite) return run_hopper_command(flags, run, session);
  if (flags.name == bench::kLifecycleSuite) return run_lifecycle_command(flags, run, session);
  auto suite = named_suite(flags.name);
  if (!suite) return std::unexpected(suite.error());
  bench::SuiteOptions options;
  options.executable = session.executable;
  options.suite = std::move(*suite);
  const bool on_cpu = options.suite.device == "cpu";
  options.threads = !run.threads.empty() ? run.threads : on_cpu ? usual_threads() : std::vector<int>{1};
  options.filter = flags.filter;
  if (flags.rounds > 0) options.rounds = flags.rounds;
  options.row_limit_s = flags.row_limit_s;
  options.total_limit_s = flags.total_limit_s;
  std::error_code error;
  std::filesystem::create_directories(run.out, error);
  options.record = std::filesystem::path(run.out) / fmt::format("suite-{}.jsonl", options.suite.name);
  options.program = file_identity(session.executable);
  options.resume = run.resume;
  options.seed = run.seed;
  options.show_progress = run.show_progress;
  options.timeout_ms = run.timeout_ms;
  auto report = bench::run_suite(options);
  if (!report) return std::unexpected(report.error());
  SuiteOutput output{std::string(report->suite.name), bench::render_suite(*report, false),
                     bench::render_suite(*report, true), bench::to_json(*report)};
  if (auto written = write_output(std::move(output), run, session, options.threads.back()); !written)
    return std::unexpected(written.error());
  return exit_code_of(*report);
}

}  // namespace tilewright::tools
