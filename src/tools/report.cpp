// `tilewright report`: one self-contained page from the folder of a record.
#include <fmt/format.h>

#include <memory>

#include "bench/record/table_csv.h"
#include "bench/report/page.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

struct Options {
  std::string folder = "out";
  std::string html;
  std::string markdown;
  std::string title;
  bool json = false;
};

Result<ExitCode> run_report(const Options& options) {
  Result<report::ReportInput> input = report::load_report_input(options.folder);
  if (!input) return std::unexpected(input.error());
  if (!options.title.empty()) input->title = options.title;
  if (options.json) {
    fmt::print("{}\n", report::render_json(*input).dump(2));
    return ExitCode::Ok;
  }
  if (options.markdown == "-") {
    fmt::print("{}", report::render_markdown(*input));
    return ExitCode::Ok;
  }
  if (!options.markdown.empty()) {
    if (Status status = bench::replace_file(options.markdown, report::render_markdown(*input)); !status)
      return std::unexpected(status.error());
    fmt::print("{}\n", options.markdown);
    return ExitCode::Ok;
  }
  const std::string path =
      options.html.empty() ? (std::filesystem::path(options.folder) / "report.html").string() : options.html;
  if (Status status = bench::replace_file(path, report::render_html(*input)); !status)
    return std::unexpected(status.error());
  fmt::print("{}: {} records\n", path, input->cells.size());
  return ExitCode::Ok;
}

}  // namespace

Run add_report(CLI::App& app, Session&) {
  auto options = std::make_shared<Options>();
  app.add_option("folder", options->folder, "of the record: cells.jsonl and what lies beside it")
      ->capture_default_str()
      ->type_name("DIR");
  app.add_option("--html", options->html, "where to write the page; DIR/report.html when absent")->type_name("FILE");
  app.add_option("--export-markdown", options->markdown, "write Markdown instead; - for the screen")->type_name("FILE");
  app.add_option("--title", options->title, "of the page");
  app.add_flag("--json", options->json, "print what the page says as JSON");
  app.footer(
      "The page shows what the folder has: cells.jsonl, decision.json, tune.jsonl, traffic.json, service.json, "
      "cost.jsonl.\n"
      "Examples:\n  tilewright report out\n  tilewright report out --export-markdown -");
  return [options] { return run_report(*options); };
}

}  // namespace tilewright::tools
