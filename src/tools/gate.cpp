// `tilewright gate BEFORE AFTER`: regressions between two folders of records; what continuous integration runs.
#include "bench/gate.h"

#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "bench/record/cell_log.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

struct Options {
  std::string before, after;
  double delta_percent = 2;
  bool any_environment = false;
  bool json = false;
};

Result<std::vector<bench::Cell>> load(const std::string& path) {
  const std::filesystem::path file =
      std::filesystem::is_directory(path) ? std::filesystem::path(path) / "cells.jsonl" : std::filesystem::path(path);
  if (!std::filesystem::exists(file))
    return fail(DiagnosticCode::E1600, fmt::format("there is no {}", file.string()), "give a folder that bench wrote");
  auto cells = bench::read_cells(file);
  if (!cells) return std::unexpected(cells.error());
  return std::move(cells->cells);
}

std::string text_of(const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : "not-run"; }
nlohmann::json json_of(const std::optional<double>& value) { return value ? nlohmann::json(*value) : nlohmann::json(); }

void print_line(const bench::GateLine& line) {
  const bool is_check = line.key.stage == bench::Stage::Check;
  const bool has_ratio = line.before && line.after && *line.before > 0;
  fmt::print("{:<14} {:<12} {:>12} → {:>12} {:>8}  {} · {}{}\n", bench::name(line.change),
             bench::info(line.key.stage).metric, is_check ? "" : text_of(line.before),
             is_check ? "" : text_of(line.after), has_ratio ? fmt::format("×{:.3f}", *line.after / *line.before) : "",
             line.key.candidate, line.key.subject.shape, line.why.empty() ? "" : " · " + line.why);
}

nlohmann::json report_json(const bench::GateReport& report) {
  nlohmann::json lines = nlohmann::json::array();
  for (const bench::GateLine& line : report.lines) {
    lines.push_back({{"change", bench::name(line.change)},
                     {"metric", bench::info(line.key.stage).metric},
                     {"candidate", line.key.candidate},
                     {"shape", line.key.subject.shape},
                     {"dtype", line.key.subject.dtype},
                     {"before", json_of(line.before)},
                     {"after", json_of(line.after)},
                     {"before_seq", line.before_seq},
                     {"after_seq", line.after_seq},
                     {"why", line.why}});
  }
  return {{"lines", lines}, {"same_environment", report.same_environment}};
}

ExitCode exit_code_of(const bench::GateReport& report) {
  for (const bench::GateLine& line : report.lines) {
    if (line.change == bench::Change::Broken && line.key.stage == bench::Stage::Check) return ExitCode::Incorrect;
  }
  if (report.has(bench::Change::Worse) || report.has(bench::Change::Broken)) return ExitCode::Regression;
  const bool is_thin =
      report.lines.empty() || report.has(bench::Change::Missing) || report.has(bench::Change::NotComparable);
  return is_thin ? ExitCode::Insufficient : ExitCode::Ok;
}

}  // namespace

Run add_gate(CLI::App& app, Session&) {
  auto options = std::make_shared<Options>();
  app.add_option("before", options->before, "folder (or cells.jsonl) of the reference point")->required();
  app.add_option("after", options->after, "folder (or cells.jsonl) to judge")->required();
  app.add_option("--delta", options->delta_percent, "growth below this many percent is no regression")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  app.add_flag("--any-environment", options->any_environment, "compare although the machines or their software differ");
  app.add_flag("--json", options->json, "print as JSON");
  app.footer(
      "Examples:\n"
      "  tilewright gate out-main out-branch\n"
      "  tilewright gate out-main out-branch --delta 5 --json\n"
      "Exit codes: 0 nothing is worse · 3 a result became wrong · 5 a regression · 6 cells are missing · 7 other "
      "environment");
  return [options]() -> Result<ExitCode> {
    auto before = load(options->before), after = load(options->after);
    if (!before) return std::unexpected(before.error());
    if (!after) return std::unexpected(after.error());
    const bench::GateReport report = bench::gate_cells(*before, *after, {.delta = options->delta_percent / 100});
    if (options->json)
      fmt::print("{}\n", report_json(report).dump(2));
    else
      for (const bench::GateLine& line : report.lines) print_line(line);
    if (!report.same_environment && !options->any_environment) {
      fmt::print(stderr,
                 "the two folders come from different environments; --any-environment compares them all the same\n");
      return ExitCode::Stale;
    }
    return exit_code_of(report);
  };
}

}  // namespace tilewright::tools
