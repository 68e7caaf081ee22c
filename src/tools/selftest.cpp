// `tilewright selftest`: is the benchmark itself to be trusted here? Plants known mistakes and expects every one to be
// caught.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/cheat_selftest.h"
#include "bench/oracle/mutant_selftest.h"
#include "bench/overhead_selftest.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

struct Options {
  bool mutants = false;
  bool cheats = false;
  bool overhead = false;
  bool json = false;
  uint64_t seed = 1;
  std::string data = "normal";
};

nlohmann::json lines_json(const std::vector<bench::SelftestLine>& lines) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& line : lines) {
    out.push_back(
        {{"name", line.name}, {"workload", line.workload}, {"ok", line.as_expected}, {"detail", line.detail}});
  }
  return out;
}

void print_lines(std::string_view title, std::string_view good, const std::vector<bench::SelftestLine>& lines) {
  size_t passed = 0;
  for (const auto& line : lines) passed += line.as_expected;
  fmt::print("{}: {}/{} {}\n", title, passed, lines.size(), good);
  for (const auto& line : lines) {
    fmt::print("  {:4} {:26} {:48} {}\n", line.as_expected ? "ok" : "FAIL", line.name, line.workload, line.detail);
  }
}

Result<ExitCode> run_mutants(const Options& options) {
  const auto distribution = bench::parse_distribution(options.data);
  if (!distribution) {
    return fail(DiagnosticCode::E1600, fmt::format("unknown data '{}'", options.data),
                "normal, uniform, large, specials, integers or zeros");
  }
  const bench::MutantSelftest result = bench::run_mutant_selftest({*distribution, options.seed});
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"mutants", lines_json(result.mutants)},
                                      {"controls", lines_json(result.controls)},
                                      {"data", options.data},
                                      {"seed", options.seed},
                                      {"passed", result.passed()}}
                           .dump(2));
  } else {
    print_lines("mutants", "rejected", result.mutants);
    print_lines("clean controls", "accepted", result.controls);
    fmt::print("{} (data {}, seed {})\n", result.passed() ? "the oracle sees" : "oracle blind", options.data,
               options.seed);
  }
  return result.passed() ? ExitCode::Ok : ExitCode::Insufficient;
}

/// Built beside the command: bin/tilewright and lib/tilewright/cheats.so.
std::string cheats_library(const Session& session) {
  return (std::filesystem::path(session.executable).parent_path().parent_path() / "lib/tilewright/cheats.so").string();
}

Result<ExitCode> run_cheats(const Options& options, const Session& session) {
  auto result = bench::run_cheat_selftest(session.executable, cheats_library(session));
  if (!result) return std::unexpected(result.error());
  size_t caught = 0;
  nlohmann::json lines = nlohmann::json::array();
  for (const bench::CheatLine& line : result->cheats) {
    caught += line.caught;
    lines.push_back({{"name", line.name}, {"what", line.what}, {"caught", line.caught}, {"by", line.by}});
  }
  if (options.json) {
    fmt::print(
        "{}\n",
        nlohmann::json{{"cheats", lines}, {"control_accepted", !result->control.caught}, {"passed", result->passed()}}
            .dump(2));
    return result->passed() ? ExitCode::Ok : ExitCode::Insufficient;
  }
  fmt::print("cheats: {}/{} caught\n", caught, result->cheats.size());
  for (const bench::CheatLine& line : result->cheats) {
    fmt::print("  {:4} {:18} {:52} {}\n", line.caught ? "ok" : "FAIL", line.name, line.what, line.by);
  }
  fmt::print("  {:4} {:18} {:52} {}\n", result->control.caught ? "FAIL" : "ok", "honest",
             "the same kernel without a cheat is accepted", result->control.by);
  return result->passed() ? ExitCode::Ok : ExitCode::Insufficient;
}

Result<ExitCode> run_overhead(const Options& options) {
  auto result = bench::run_overhead_selftest();
  if (!result) return std::unexpected(result.error());
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"kernel_us", result->kernel_us},
                                      {"sampled_us", result->sampled_us},
                                      {"batch_us", result->batch_us},
                                      {"blocks", result->blocks},
                                      {"sample_percent", result->own_percent},
                                      {"sample_ci", {result->own_interval.low, result->own_interval.high}},
                                      {"loop_percent", result->wall_percent},
                                      {"loop_ci", {result->wall_interval.low, result->wall_interval.high}},
                                      {"limit_percent", result->limit_percent},
                                      {"samples", result->samples},
                                      {"passed", result->passed()}}
                           .dump(2));
  } else {
    fmt::print(
        "a kernel of {:g} µs: {:.3f} µs as sampled, {:.3f} µs per launch of a batch ({} samples in {} blocks of both)\n"
        "  a sample says          {:+.2f} % [{:+.2f}, {:+.2f}] more than the batch\n"
        "  the loop of samples    {:+.2f} % [{:+.2f}, {:+.2f}] of wall time beside the batch\n"
        "{} (limit {:g} %; medians of paired ratios, 95 % intervals)\n",
        result->kernel_us, result->sampled_us, result->batch_us, result->samples, result->blocks, result->own_percent,
        result->own_interval.low, result->own_interval.high, result->wall_percent, result->wall_interval.low,
        result->wall_interval.high, result->passed() ? "passed" : "FAILED", result->limit_percent);
  }
  return result->passed() ? ExitCode::Ok : ExitCode::InvalidMeasurement;
}

}  // namespace

Run add_selftest(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  auto* what = app.add_option_group("what");
  what->add_flag("--mutants", options->mutants,
                 "10 wrong kernels must be rejected, 16 right ones accepted (exit 6 otherwise)");
  what->add_flag("--cheats", options->cheats,
                 "13 kernels that only look fast must be caught, their honest twin accepted");
  what->add_flag("--overhead", options->overhead, "what sampling adds to a kernel of 10 µs (exit 4 above 5 %)");
  what->require_option(1);
  app.add_option("--seed", options->seed, "of the data")->capture_default_str();
  app.add_option("--data", options->data, "distribution; on zeros or integers the oracle goes blind, as it says")
      ->capture_default_str();
  app.add_flag("--json", options->json, "machine-readable");
  app.footer(
      "Examples:\n  tilewright selftest --mutants\n  tilewright selftest --cheats\n  tilewright selftest --overhead\n  "
      "tilewright selftest --mutants "
      "--seed 7 --json\n"
      "  tilewright selftest --mutants --data zeros   # exits with 6");
  return [options, &session]() -> Result<ExitCode> {
    if (options->overhead) return run_overhead(*options);
    return options->cheats ? run_cheats(*options, session) : run_mutants(*options);
  };
}

}  // namespace tilewright::tools
