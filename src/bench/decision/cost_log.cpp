#include "bench/decision/cost_log.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/line_log.h"
#include "bench/record/cell.h"

namespace tilewright::decision {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"build", "port", "validate", "upgrade", "incident"};

Result<CostEntry> entry_from_line(const std::string& line, const std::string& path, int number) {
  const auto refuse = [&](std::string_view what) {
    return fail_at(DiagnosticCode::E1662, {std::make_shared<const std::string>(path), number, 1, 1, nullptr},
                   fmt::format("not a cost entry: {}", what),
                   "entries are appended with `tilewright cost add`, never edited");
  };
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

Result<std::vector<CostEntry>> entries_of(const std::vector<std::string>& lines, const std::string& path) {
  std::vector<CostEntry> entries;
  for (const std::string& line : lines) {
    Result<CostEntry> entry = entry_from_line(line, path, static_cast<int>(entries.size()) + 1);
    if (!entry) return std::unexpected(entry.error());
    entries.push_back(std::move(*entry));
  }
  return entries;
}

Status check_entry(const CostEntry& entry, size_t existing) {
  const auto refuse = [](std::string message) { return fail(DiagnosticCode::E1662, std::move(message)); };
  if (!std::isfinite(entry.hours) || entry.hours < 0)
    return refuse(fmt::format("{} hours: expected a number >= 0", entry.hours));
  if (!std::isfinite(entry.wall_ms) || entry.wall_ms < 0)
    return refuse(fmt::format("{} ms: expected a number >= 0", entry.wall_ms));
  if (entry.candidate.empty()) return refuse("a cost belongs to a candidate; none was named");
  if (!entry.is_measured && entry.by.empty()) return refuse("declared hours need the name of who declares them");
  if (entry.corrects > existing) {
    return refuse(fmt::format("entry {} cannot be corrected: the file has {}", entry.corrects, existing));
  }
  return {};
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
  if (Status status = check_entry(entry, existing->size()); !status) return status;
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
