// `tilewright cost`: the hours people put into a kernel, declared and append-only, beside what machines measured.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/decision/cost_log.h"
#include "tools/command.h"

namespace tilewright::tools {
namespace {

using namespace decision;

struct Options {
  std::string out = "out";
  std::string kind = "port";
  CostEntry entry;
  std::string candidate;
  bool json = false;

  std::filesystem::path path() const { return std::filesystem::path(out) / "cost.jsonl"; }
};

Result<ExitCode> run_add(const Options& options) {
  CostEntry entry = options.entry;
  const std::optional<CostKind> kind = parse_cost_kind(options.kind);
  if (!kind)
    return fail(DiagnosticCode::E1662, fmt::format("unknown kind '{}'", options.kind),
                "use build, port, validate, upgrade or incident");
  entry.kind = *kind;
  entry.candidate = options.candidate;
  if (Status status = append_cost(options.path(), entry); !status) return std::unexpected(status.error());
  fmt::print("{}: {} h of {} for {}, declared by {}\n", options.path().string(), entry.hours, options.kind,
             entry.candidate, entry.by);
  return ExitCode::Ok;
}

Result<ExitCode> run_show(const Options& options) {
  const Result<std::vector<CostEntry>> entries = read_costs(options.path());
  if (!entries) return std::unexpected(entries.error());
  const CostSummary summary = summarise(*entries, options.candidate);
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const CostEntry& entry : *entries) {
      nlohmann::json one = to_json(entry);
      one["seq"] = entry.seq;
      list.push_back(std::move(one));
    }
    fmt::print("{}\n", nlohmann::json{{"hours", summary.hours},
                                      {"adoption_hours", summary.adoption_hours},
                                      {"upkeep_hours", summary.upkeep_hours},
                                      {"validate_ms", summary.validate_ms},
                                      {"entries", std::move(list)}}
                           .dump(2));
    return ExitCode::Ok;
  }
  for (const CostEntry& entry : *entries) {
    const std::string amount =
        entry.is_measured ? fmt::format("{:.1f} s", entry.wall_ms / 1e3) : fmt::format("{:g} h", entry.hours);
    fmt::print("{:>4}  {:<10} {:<9} {:>9}  {:<9} {:<16} {}{}\n", entry.seq, entry.at.substr(0, 10), name(entry.kind),
               amount, entry.is_measured ? "measured" : "declared", entry.candidate, entry.by,
               entry.note.empty() ? "" : "  " + entry.note);
  }
  fmt::print(
      "people: {:g} h to adopt, {:g} h of upkeep (declared); last validation {:.1f} s, {} of {} records failed "
      "(measured)\n",
      summary.adoption_hours, summary.upkeep_hours, summary.validate_ms / 1e3, summary.failures, summary.checked);
  return ExitCode::Ok;
}

}  // namespace

Run add_cost(CLI::App& app, Session&) {
  auto options = std::make_shared<Options>();
  CLI::App* add = app.add_subcommand("add", "Declare hours")->group("Subcommands");
  add->add_option("--candidate", options->candidate, "whose cost")->required();
  add->add_option("--kind", options->kind, "build, port, validate, upgrade, incident")->capture_default_str();
  add->add_option("--hours", options->entry.hours, "of a person")->required();
  add->add_option("--by", options->entry.by, "who declares them")->required();
  add->add_option("--note", options->entry.note, "what was done");
  add->add_option("--corrects", options->entry.corrects, "seq of the entry this one replaces");
  CLI::App* show = app.add_subcommand("show", "List entries and sums")->group("Subcommands");
  show->add_option("--candidate", options->candidate, "only this one's sums");
  show->add_flag("--json", options->json, "print JSON");
  for (CLI::App* part : {add, show})
    part->add_option("--out", options->out, "folder of the record")->capture_default_str();
  app.require_subcommand(1);
  app.footer(
      "Examples:\n  tilewright cost add --candidate ours --kind port --hours 6 --by \"A. Reader\" --note \"layout of "
      "the KV cache\"\n"
      "  tilewright cost show");
  return [=]() -> Result<ExitCode> { return add->parsed() ? run_add(*options) : run_show(*options); };
}

}  // namespace tilewright::tools
