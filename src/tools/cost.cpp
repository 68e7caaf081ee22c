// `tilewright cost`: the hours people put into a kernel, declared and append-only, beside what machines measured.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

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

std::string validation_text(const CostSummary& summary) {
  if (summary.measured_entries == 0) return "re-validation not-run";
  return fmt::format("last validation {:.1f} s: {} of {} records failed, {} stale (measured)",
                     summary.validate_ms / 1e3, summary.failures, summary.checked, summary.stale);
}

nlohmann::json summary_json(const CostSummary& summary) {
  const bool is_validated = summary.measured_entries > 0;
  return {{"hours", summary.hours},
          {"adoption_hours", summary.adoption_hours},
          {"upkeep_hours", summary.upkeep_hours},
          {"validate_ms", is_validated ? nlohmann::json(summary.validate_ms) : nlohmann::json("not-run")}};
}

void print_entry(const CostEntry& entry, bool is_corrected) {
  const std::string amount =
      entry.is_measured ? fmt::format("{:.1f} s", entry.wall_ms / 1e3) : fmt::format("{:g} h", entry.hours);
  fmt::print("{:>4}  {:<10} {:<9} {:>9}  {:<9} {:<16} {}{}{}\n", entry.seq, entry.at.substr(0, 10), name(entry.kind),
             amount, entry.is_measured ? "measured" : "declared", entry.candidate, entry.by,
             entry.note.empty() ? "" : "  " + entry.note,
             is_corrected     ? "  (corrected)"
             : entry.corrects ? fmt::format("  (instead of {})", entry.corrects)
                              : "");
}

/// Hours belong to a candidate: sums are never over several.
Result<ExitCode> run_show(const Options& options) {
  const Result<std::vector<CostEntry>> all = read_costs(options.path());
  if (!all) return std::unexpected(all.error());
  std::set<std::string> candidates;
  std::set<uint64_t> corrected;
  std::vector<CostEntry> entries;
  for (const CostEntry& entry : *all) {
    corrected.insert(entry.corrects);
    if (!options.candidate.empty() && entry.candidate != options.candidate) continue;
    candidates.insert(entry.candidate);
    entries.push_back(entry);
  }
  if (!options.json) {
    for (const CostEntry& entry : entries) print_entry(entry, corrected.contains(entry.seq));
    for (const std::string& candidate : candidates) {
      const CostSummary summary = summarise(*all, candidate);
      fmt::print("{}: {:g} h of people to adopt, {:g} h of upkeep (declared); {}\n", candidate, summary.adoption_hours,
                 summary.upkeep_hours, validation_text(summary));
    }
    if (candidates.empty()) fmt::print("no entry\n");
    return ExitCode::Ok;
  }
  nlohmann::json list = nlohmann::json::array(), sums = nlohmann::json::object();
  for (const CostEntry& entry : entries) {
    nlohmann::json one = to_json(entry);
    one["seq"] = entry.seq;
    list.push_back(std::move(one));
  }
  for (const std::string& candidate : candidates) sums[candidate] = summary_json(summarise(*all, candidate));
  nlohmann::json out = candidates.size() == 1 ? sums[*candidates.begin()] : nlohmann::json::object();
  out["entries"] = std::move(list);
  out["candidates"] = std::move(sums);
  fmt::print("{}\n", out.dump(2));
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
  show->add_option("--candidate", options->candidate, "only this one's entries and sums");
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
