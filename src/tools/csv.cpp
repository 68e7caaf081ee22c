// `tilewright csv`: the template of a table.csv, a check of one, or one rebuilt from cells.jsonl.
#include <fmt/ranges.h>

#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "bench/record/cell_log.h"
#include "bench/record/table_csv.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

struct Options {
  bool print_template = false;
  std::string check;
  std::string from_cells;
  std::string candidate;
};

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E1600, fmt::format("cannot open {}", path));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

Result<ExitCode> check_table(const std::string& path) {
  auto text = read_text(path);
  if (!text) return std::unexpected(text.error());
  auto rows = bench::parse_table(*text);
  if (!rows) {
    Diagnostic error = rows.error();
    error.message = fmt::format("{}: {}", path, error.message);
    return std::unexpected(std::move(error));
  }
  fmt::print("{}: {} rows, well formed\n", path, rows->size());
  return ExitCode::Ok;
}

Result<ExitCode> rebuild(const Options& options) {
  auto file = bench::read_cells(options.from_cells);
  if (!file) return std::unexpected(file.error());
  std::set<std::string> candidates;
  for (const bench::Cell& cell : file->cells) candidates.insert(cell.candidate);
  std::string candidate = options.candidate;
  if (candidate.empty() && candidates.size() == 1) candidate = *candidates.begin();
  if (!candidates.contains(candidate)) {
    return fail(DiagnosticCode::E1600, fmt::format("{} has {} candidates", options.from_cells, candidates.size()),
                fmt::format("choose one with --candidate: {}", fmt::join(candidates, ", ")));
  }
  fmt::print("{}", bench::write_table(bench::make_table(file->cells, candidate)));
  return ExitCode::Ok;
}

}  // namespace

Run add_csv(CLI::App& app, Session&) {
  auto options = std::make_shared<Options>();
  auto* what = app.add_option_group("what");
  what->add_flag("--template", options->print_template, "print the header and a row of not-run cells");
  what->add_option("--check", options->check, "check that FILE is a well-formed table.csv")->type_name("FILE");
  what->add_option("--from", options->from_cells, "rebuild the table from a cells.jsonl")->type_name("FILE");
  what->require_option(1);
  app.add_option("--candidate", options->candidate, "whose rows to rebuild, when the file has several");
  app.footer(
      "Examples:\n  tilewright csv --template > mine.csv\n  tilewright csv --check out/numpy/table.csv\n"
      "  tilewright csv --from out/cells.jsonl --candidate numpy");
  return [options]() -> Result<ExitCode> {
    if (options->print_template) {
      fmt::print("{}", bench::table_template());
      return ExitCode::Ok;
    }
    return options->check.empty() ? rebuild(*options) : check_table(options->check);
  };
}

}  // namespace tilewright::tools
