// `tilewright claims`: someone else's table, checked against its own arithmetic and kept apart from measurements.
#include "bench/decision/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "bench/decision/objective.h"
#include "bench/oracle/workload.h"
#include "bench/record/cell_log.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

using namespace decision;

struct Options {
  std::string file;
  ClaimSource source;
  std::string out = "out";
  bool json = false;
};

struct Checked {
  ClaimTable table;
  std::vector<Lint> lints;
};

Result<Checked> check_file(const Options& options) {
  std::ifstream in(options.file, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E1643, fmt::format("cannot read '{}'", options.file), "check the path");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  Result<ClaimTable> table = parse_claims(text, options.file, options.source.dtype);
  if (!table) return std::unexpected(table.error());
  std::vector<Lint> lints = lint_claims(*table, find_peak(options.source.device, options.source.dtype));
  return Checked{std::move(*table), std::move(lints)};
}

bool is_serious(const Lint& lint) { return lint.code != "unchecked"; }

nlohmann::json lints_json(const std::vector<Lint>& lints) {
  nlohmann::json all = nlohmann::json::array();
  for (const Lint& lint : lints) all.push_back({{"code", lint.code}, {"line", lint.line}, {"message", lint.message}});
  return all;
}

void print_lints(const Checked& checked, const std::string& file) {
  for (const Lint& lint : checked.lints) {
    fmt::print("{}: {}: {}\n", lint.line ? fmt::format("{}:{}", file, lint.line) : file, lint.code, lint.message);
  }
  const auto serious = std::ranges::count_if(checked.lints, is_serious);
  fmt::print("{} rows, {} findings; a claim is never a measurement\n", checked.table.rows.size(), serious);
}

Result<ExitCode> run_lint(const Options& options) {
  const Result<Checked> checked = check_file(options);
  if (!checked) return std::unexpected(checked.error());
  if (options.json) {
    fmt::print("{}\n",
               nlohmann::json{{"rows", checked->table.rows.size()}, {"lint", lints_json(checked->lints)}}.dump(2));
  } else {
    print_lints(*checked, options.file);
  }
  return std::ranges::any_of(checked->lints, is_serious) ? ExitCode::InvalidMeasurement : ExitCode::Ok;
}

/// What a claim says of itself has to be sayable: a day that was, types that are, a name that is no path.
Status check_source(const ClaimSource& source) {
  const auto refuse = [](std::string message, const char* help) {
    return fail(DiagnosticCode::E1600, std::move(message), help);
  };
  const std::string today = bench::utc_now().substr(0, 10);
  if (!is_date(source.as_of))
    return refuse(fmt::format("--as-of '{}' is no day", source.as_of), "write it like 2026-01-31");
  if (days_between(today, source.as_of) > 1)
    return refuse(fmt::format("--as-of {} is still to come", source.as_of), "give the day on which the table stood");
  if (source.candidate.find('/') != std::string::npos || source.candidate.starts_with('.'))
    return refuse(fmt::format("--candidate '{}' is a path, not a name", source.candidate), "name whose kernel it is");
  if (const Result<bench::DTypes> dtypes = bench::parse_dtypes(source.dtype); !dtypes)
    return std::unexpected(dtypes.error());
  return {};
}

Result<ExitCode> run_import(const Options& options) {
  if (Status status = check_source(options.source); !status) return std::unexpected(status.error());
  const Result<Checked> checked = check_file(options);
  if (!checked) return std::unexpected(checked.error());
  std::vector<bench::Cell> cells = claimed_cells(checked->table, checked->lints, options.source);
  for (const bench::Cell& cell : cells) {
    for (const auto& [what, text] : {std::pair<const char*, const std::string&>{"shape", cell.subject.shape},
                                     {"device", cell.subject.device},
                                     {"candidate", cell.candidate}}) {
      if (Status status = bench::check_identity(what, text); !status) return std::unexpected(status.error());
    }
  }
  const std::filesystem::path path = std::filesystem::path(options.out) / "cells.jsonl";
  std::error_code ignored;
  std::filesystem::create_directories(options.out, ignored);
  Result<bench::CellLog> log = bench::CellLog::open(path);
  if (!log) return std::unexpected(log.error());
  for (bench::Cell& cell : cells) {
    cell.started_at = cell.ended_at = bench::utc_now();
    if (Status status = log->append(cell); !status) return std::unexpected(status.error());
  }
  if (options.json) {
    fmt::print(
        "{}\n",
        nlohmann::json{{"claimed", cells.size()}, {"file", path.string()}, {"lint", lints_json(checked->lints)}}.dump(
            2));
    return ExitCode::Ok;
  }
  print_lints(*checked, options.file);
  fmt::print("{}: {} cells in state claimed, from {}\n", path.string(), cells.size(), options.source.source);
  return ExitCode::Ok;
}

CLI::App* add_part(CLI::App& app, Options& options, const char* name, const char* what) {
  CLI::App* part = app.add_subcommand(name, what)->group("Subcommands");
  part->add_option("table", options.file, "CSV or Markdown table with units in its headings")
      ->required()
      ->type_name("FILE");
  part->add_option("--dtype", options.source.dtype, "of the shapes: f16, f32, f16/f32/f16")->capture_default_str();
  part->add_option("--device", options.source.device, "what it is said to have run on: h100, h200, a100, …");
  part->add_flag("--json", options.json, "print JSON");
  return part;
}

}  // namespace

Run add_claims(CLI::App& app, Session&) {
  auto options = std::make_shared<Options>();
  options->source.dtype = "f16/f32/f16";
  CLI::App* lint =
      add_part(app, *options, "lint", "Check a table against its own arithmetic and the device's data sheet");
  CLI::App* import = add_part(app, *options, "import", "Record a table's rows as claims");
  import->get_option("--device")->required();
  import->add_option("--candidate", options->source.candidate, "whose kernel the numbers are said to be")->required();
  import->add_option("--source", options->source.source, "where the table stands: a URL, a paper")->required();
  import->add_option("--as-of", options->source.as_of, "date of the table, YYYY-MM-DD")->required();
  import->add_option("--commit", options->source.commit, "commit of the code it describes");
  import->add_option("--script", options->source.script, "the script that is said to produce it");
  import->add_option("--environment", options->source.environment, "versions it is said to have used");
  import->add_option("--out", options->out, "folder of the record")->capture_default_str();
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  tilewright claims lint table.md --device h100 --dtype f16\n"
      "  tilewright claims import table.md --device h100 --candidate theirs --source https://example.org/readme "
      "--as-of 2026-01-31");
  return [=]() -> Result<ExitCode> { return lint->parsed() ? run_lint(*options) : run_import(*options); };
}

}  // namespace tilewright::tools
