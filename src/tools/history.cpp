// `tilewright history`: how measured cells change from commit to commit.
#include "bench/report/history.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/record/cell_log.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

struct Options {
  std::string database = "out/history.db";
  std::string folder = "out";
  std::string commit;
  std::string stage = "warm_ms";
  report::HistoryFilter filter;
  bool json = false;
};

Result<ExitCode> run_add(const Options& options) {
  Result<bench::CellFile> file = bench::read_cells(std::filesystem::path(options.folder) / "cells.jsonl");
  if (!file) return std::unexpected(file.error());
  Result<report::History> history = report::History::open(options.database);
  if (!history) return std::unexpected(history.error());
  if (Status status = history->add(options.commit, file->cells); !status) return std::unexpected(status.error());
  fmt::print("{}: {} holds {} cells\n", options.database, options.commit, file->cells.size());
  return ExitCode::Ok;
}

std::string bar(double value, double most) {
  return std::string(static_cast<size_t>(most > 0 ? 24 * value / most : 0), '#');
}

void print_points(const std::vector<report::HistoryPoint>& points) {
  const report::HistoryPoint* before = nullptr;
  double most = 0;
  for (const report::HistoryPoint& p : points) most = std::max(most, p.value);
  for (const report::HistoryPoint& p : points) {
    const bool is_new = !before || before->candidate != p.candidate || before->subject != p.subject;
    if (is_new) fmt::print("{} {} {} {}\n", p.candidate, p.subject.shape, p.subject.dtype, p.subject.device);
    const std::string change = is_new ? "" : fmt::format("{:+.1f} %", 100 * (p.value / before->value - 1));
    const std::string interval = p.low && p.high ? fmt::format("[{:.4g}, {:.4g}]", *p.low, *p.high) : "";
    fmt::print("  {:<12} {:<10} {:>10.4g} {:<22} {:>8} {}\n", p.commit.substr(0, 12), p.at.substr(0, 10), p.value,
               interval, change, bar(p.value, most));
    before = &p;
  }
  if (points.empty()) fmt::print("no measured cell of this stage\n");
}

Result<ExitCode> run_show(const Options& options) {
  const std::optional<bench::Stage> stage = bench::parse_stage(options.stage);
  if (!stage)
    return fail(DiagnosticCode::E1600, fmt::format("unknown stage '{}'", options.stage),
                "use a metric like warm_ms, compile_ms, peak_mb");
  std::error_code ignored;
  if (!std::filesystem::exists(options.database, ignored))
    return fail(DiagnosticCode::E1664, fmt::format("there is no history {}", options.database),
                "`tilewright history add COMMIT` makes it; --db names another");
  const Result<report::History> history = report::History::open(options.database);
  if (!history) return std::unexpected(history.error());
  report::HistoryFilter filter = options.filter;
  filter.stage = *stage;
  const Result<std::vector<report::HistoryPoint>> points = history->read(filter);
  if (!points) return std::unexpected(points.error());
  if (!options.json) {
    print_points(*points);
    return ExitCode::Ok;
  }
  nlohmann::json list = nlohmann::json::array();
  for (const report::HistoryPoint& p : *points) {
    list.push_back({{"commit", p.commit},
                    {"at", p.at},
                    {"shape", p.subject.shape},
                    {"dtype", p.subject.dtype},
                    {"device", p.subject.device},
                    {"candidate", p.candidate},
                    {"stage", options.stage},
                    {"value", p.value}});
    if (p.low && p.high) list.back()["ci"] = {*p.low, *p.high};
  }
  fmt::print("{}\n", list.dump(2));
  return ExitCode::Ok;
}

}  // namespace

Run add_history(CLI::App& app, Session&) {
  auto options = std::make_shared<Options>();
  CLI::App* add = app.add_subcommand("add", "Put a record's measured cells under a commit")->group("Subcommands");
  add->add_option("commit", options->commit, "whose measurements these are")->required();
  add->add_option("--out", options->folder, "folder of the record")->capture_default_str();
  CLI::App* show = app.add_subcommand("show", "A stage, commit by commit")->group("Subcommands");
  show->add_option("--stage", options->stage, "warm_ms, compile_ms, …")->capture_default_str();
  show->add_option("--shape", options->filter.shape, "only this workload");
  show->add_option("--candidate", options->filter.candidate, "only this candidate");
  show->add_option("--last", options->filter.last, "commits")->capture_default_str()->check(CLI::PositiveNumber);
  show->add_flag("--json", options->json, "print JSON");
  for (CLI::App* part : {add, show}) part->add_option("--db", options->database, "SQLite file")->capture_default_str();
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  tilewright history add $(git rev-parse HEAD)\n  tilewright history show --stage warm_ms --last 10");
  return [=]() -> Result<ExitCode> { return add->parsed() ? run_add(*options) : run_show(*options); };
}

}  // namespace tilewright::tools
