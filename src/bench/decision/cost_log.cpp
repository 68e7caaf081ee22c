#include "bench/decision/cost_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/line_log.h"
#include "bench/record/cell.h"

namespace tilewright::decision {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"build", "port", "validate", "upgrade", "incident"};

std::unexpected<Diagnostic> refuse_line(const std::string& path, int number, std::string_view what) {
  return fail_at(DiagnosticCode::E1662, {std::make_shared<const std::string>(path), number, 1, 1, nullptr},
                 fmt::format("not a cost entry: {}", what),
                 "entries are appended with `tilewright cost add`, never edited");
}

Result<CostEntry> entry_from_line(const std::string& line, const std::string& path, int number) {
  const auto refuse = [&](std::string_view what) { return refuse_line(path, number, what); };
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return refuse("no JSON object");
  CostEntry entry;
  try {
    const std::optional<CostKind> kind = parse_cost_kind(json.at("kind").get<std::string>());
    if (!kind) return refuse("unknown kind");
    const std::string state = json.at("state").get<std::string>();
    if (state != "declared" && state != "measured") return refuse("state is neither declared nor measured");
    entry = {.seq = static_cast<uint64_t>(number),
             .candidate = json.at("candidate").get<std::string>(),
             .kind = *kind,
             .is_measured = state == "measured",
             .hours = json.value("hours", 0.0),
             .wall_ms = json.value("wall_ms", 0.0),
             .checked = json.value("checked", int64_t{0}),
             .failures = json.value("failures", int64_t{0}),
             .stale = json.value("stale", int64_t{0}),
             .by = json.value("by", ""),
             .note = json.value("note", ""),
             .at = json.at("at").get<std::string>(),
             .corrects = json.value("corrects", uint64_t{0})};
  } catch (const nlohmann::json::exception& error) {
    return refuse(error.what());
  }
  return entry;
}

/// What may not be in the file, given the entries before it; empty: nothing.
std::string fault_of(const CostEntry& entry, const std::vector<CostEntry>& before) {
  if (!std::isfinite(entry.hours) || entry.hours < 0)
    return fmt::format("{} hours: expected a number >= 0", entry.hours);
  if (!std::isfinite(entry.wall_ms) || entry.wall_ms < 0)
    return fmt::format("{} ms: expected a number >= 0", entry.wall_ms);
  if (entry.checked < 0 || entry.failures < 0 || entry.stale < 0) return "a negative count of records";
  if (entry.candidate.empty()) return "a cost belongs to a candidate; none was named";
  if (!entry.is_measured && entry.by.find_first_not_of(" \t") == std::string::npos)
    return "declared hours need the name of who declares them";
  if (entry.corrects == 0) return "";
  if (entry.corrects > before.size())
    return fmt::format("entry {} cannot be corrected: the file has {}", entry.corrects, before.size());
  const CostEntry& wrong = before[entry.corrects - 1];
  if (wrong.candidate != entry.candidate)
    return fmt::format("entry {} belongs to {}, not to {}", entry.corrects, wrong.candidate, entry.candidate);
  if (wrong.is_measured != entry.is_measured)
    return fmt::format("entry {} was {}: a declaration corrects only a declaration", entry.corrects,
                       wrong.is_measured ? "measured" : "declared");
  const auto earlier = std::ranges::find(before, entry.corrects, &CostEntry::corrects);
  if (earlier != before.end())
    return fmt::format("entry {} is already corrected by {}; correct that one", entry.corrects, earlier->seq);
  return "";
}

Result<std::vector<CostEntry>> entries_of(const std::vector<std::string>& lines, const std::string& path) {
  std::vector<CostEntry> entries;
  for (const std::string& line : lines) {
    const int number = static_cast<int>(entries.size()) + 1;
    Result<CostEntry> entry = entry_from_line(line, path, number);
    if (!entry) return std::unexpected(entry.error());
    if (const std::string fault = fault_of(*entry, entries); !fault.empty()) return refuse_line(path, number, fault);
    entries.push_back(std::move(*entry));
  }
  return entries;
}

}  // namespace

std::string_view name(CostKind kind) { return kKinds[static_cast<size_t>(kind)]; }

std::optional<CostKind> parse_cost_kind(std::string_view text) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i] == text) return static_cast<CostKind>(i);
  }
  return std::nullopt;
}

nlohmann::json to_json(const CostEntry& entry) {
  nlohmann::json json = {{"candidate", entry.candidate},
                         {"kind", name(entry.kind)},
                         {"state", entry.is_measured ? "measured" : "declared"},
                         {"at", entry.at}};
  if (entry.is_measured) {
    json["wall_ms"] = entry.wall_ms;
    json["checked"] = entry.checked;
    json["failures"] = entry.failures;
    json["stale"] = entry.stale;
  } else {
    json["hours"] = entry.hours;
    json["by"] = entry.by;
  }
  if (!entry.note.empty()) json["note"] = entry.note;
  if (entry.corrects) json["corrects"] = entry.corrects;
  return json;
}

Result<std::vector<CostEntry>> read_costs(const std::filesystem::path& path) {
  const Result<std::vector<std::string>> lines = read_lines(path);
  if (!lines) return std::unexpected(lines.error());
  return entries_of(*lines, path.string());
}

Status append_cost(const std::filesystem::path& path, CostEntry entry) {
  Result<LineLog> log = LineLog::open(path);
  if (!log) return std::unexpected(log.error());
  const Result<std::vector<CostEntry>> existing = entries_of(log->lines(), path.string());
  if (!existing) return std::unexpected(existing.error());
  if (std::string fault = fault_of(entry, *existing); !fault.empty())
    return fail(DiagnosticCode::E1662, std::move(fault));
  if (entry.at.empty()) entry.at = bench::utc_now();
  return log->append(to_json(entry).dump());
}

CostSummary summarise(const std::vector<CostEntry>& entries, std::string_view candidate) {
  std::set<uint64_t> corrected;
  for (const CostEntry& entry : entries) corrected.insert(entry.corrects);
  CostSummary summary;
  for (const CostEntry& entry : entries) {
    if (corrected.contains(entry.seq) || (!candidate.empty() && entry.candidate != candidate)) continue;
    if (entry.is_measured) {
      ++summary.measured_entries;
      summary.validate_ms = entry.wall_ms;
      summary.checked = entry.checked;
      summary.failures = entry.failures;
      summary.stale = entry.stale;
      continue;
    }
    ++summary.declared_entries;
    summary.hours += entry.hours;
    const bool is_adoption = entry.kind == CostKind::Build || entry.kind == CostKind::Port;
    (is_adoption ? summary.adoption_hours : summary.upkeep_hours) += entry.hours;
  }
  return summary;
}

}  // namespace tilewright::decision
