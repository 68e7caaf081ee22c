#include "bench/decision/objective.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/line_log.h"
#include "bench/record/cell.h"

namespace tilewright::decision {
namespace {

using nlohmann::json;

class ObjectiveReader {
 public:
  ObjectiveReader(const json& source, const std::string& name)
      : rest_(source), file_(std::make_shared<const std::string>(name)) {}

  void text(const char* field, std::string& value) {
    if (const json* found = take(field)) {
      if (!found->is_string()) return complain(field, "expected text", *found);
      value = found->get<std::string>();
    }
  }

  void word(const char* field, std::string& value, std::initializer_list<std::string_view> allowed) {
    text(field, value);
    if (error_ || std::ranges::find(allowed, value) != allowed.end()) return;
    std::string list;
    for (const std::string_view one : allowed) list += fmt::format("{}{}", list.empty() ? "" : " or ", one);
    complain(field, "expected " + list, value);
  }

  void number(const char* field, double& value, double least, double most = INFINITY) {
    if (const json* found = take(field)) {
      if (!found->is_number()) return complain(field, "expected a number", *found);
      value = found->get<double>();
      if (!std::isfinite(value) || value < least || value > most)
        complain(field, fmt::format("expected {} to {}", least, most), *found);
    }
  }

  void number(const char* field, std::optional<double>& value, double least) {
    if (!rest_.contains(field)) return;
    double found = 0;
    number(field, found, least);
    value = found;
  }

  void require(const char* field, bool is_there) {
    if (!is_there && !error_) error_ = diagnostic(fmt::format("'{}' is missing", field));
  }

  Status finish() {
    for (const auto& [field, value] : rest_.items()) {
      if (!error_ && !field.starts_with("_")) complain(field.c_str(), "no such field", value);
    }
    if (error_) return std::unexpected(*error_);
    return {};
  }

 private:
  const json* take(const char* field) {
    const auto it = rest_.find(field);
    if (it == rest_.end()) return nullptr;
    taken_ = *it;
    rest_.erase(it);
    return &taken_;
  }

  Diagnostic diagnostic(std::string message) const {
    Diagnostic d;
    d.code = DiagnosticCode::E1661;
    d.location.file = file_;
    d.message = std::move(message);
    d.help = "`tilewright decide --template CANDIDATE` prints every field";
    return d;
  }

  void complain(const char* field, const std::string& what, const json& found) {
    if (!error_) error_ = diagnostic(fmt::format("'{}': {}, found {}", field, what, found.dump()));
  }

  json rest_, taken_;
  std::shared_ptr<const std::string> file_;
  std::optional<Diagnostic> error_;
};

std::optional<std::chrono::sys_days> parse_date(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0;
  char extra = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2u%c", &year, &month, &day, &extra) != 3 || text.size() != 10) return {};
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok()) return {};
  return std::chrono::sys_days(date);
}

/// The case an objective is about: of two objectives for one case, the later one holds.
json case_of(const Objective& o) {
  return {
      {"candidate", o.candidate}, {"shape", o.shape}, {"dtype", o.dtype}, {"device", o.device}, {"metric", o.metric}};
}

}  // namespace

Result<Objective> parse_objective(std::string_view text, const std::string& name) {
  const json source = json::parse(text, nullptr, false);
  if (!source.is_object())
    return fail(DiagnosticCode::E1661, fmt::format("'{}' is not a JSON object", name),
                "`tilewright decide --template CANDIDATE` prints one");
  Objective o;
  o.digest = sha256_hex(text);
  std::string human_cost = "included", tuning_cost = "included";
  ObjectiveReader reader(source, name);
  reader.text("candidate", o.candidate);
  reader.text("shape", o.shape);
  reader.text("dtype", o.dtype);
  reader.text("device", o.device);
  reader.text("reference", o.reference);
  reader.word("metric", o.metric, {"warm_ms", "model_ms"});
  reader.word("percentile", o.percentile, {"p50", "p99"});
  reader.number("min_gain", o.min_gain, 0, 0.999);
  reader.number("slo_ms", o.slo_ms, 0);
  reader.number("peak_mb", o.peak_mb, 0);
  reader.number("warmup_s", o.warmup_s, 0);
  reader.number("calls_per_day", o.calls_per_day, 0);
  reader.number("horizon_days", o.horizon_days, 0);
  reader.number("starts_per_day", o.starts_per_day, 0);
  reader.number("upgrades_per_year", o.upgrades_per_year, 0);
  reader.number("human_rate_per_hour", o.human_rate_per_hour, 0);
  reader.number("machine_rate_per_hour", o.machine_rate_per_hour, 1e-9);
  reader.word("human_cost", human_cost, {"included", "excluded"});
  reader.word("tuning_cost", tuning_cost, {"included", "excluded"});
  reader.text("accepted_by", o.accepted_by);
  reader.text("accepted_on", o.accepted_on);
  o.is_human_cost_excluded = human_cost == "excluded";
  o.is_tuning_cost_excluded = tuning_cost == "excluded";
  reader.require("candidate", !o.candidate.empty());
  reader.require("calls_per_day", o.calls_per_day > 0);
  reader.require("horizon_days", o.horizon_days > 0);
  if (Status status = reader.finish(); !status) return std::unexpected(status.error());
  if (!o.accepted_on.empty() && !parse_date(o.accepted_on)) {
    return fail(DiagnosticCode::E1661,
                fmt::format("'accepted_on': expected a date like 2026-01-31, found '{}'", o.accepted_on));
  }
  return o;
}

Result<Objective> load_objective(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(DiagnosticCode::E3300, fmt::format("cannot open {}", path.string()));
  return parse_objective(std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()},
                         path.string());
}

std::string objective_template(const std::string& candidate) {
  nlohmann::ordered_json t;
  t["candidate"] = candidate;
  t["metric"] = "warm_ms";
  t["percentile"] = "p50";
  t["min_gain"] = 0.05;
  t["slo_ms"] = 20;
  t["peak_mb"] = 512;
  t["warmup_s"] = 30;
  t["calls_per_day"] = 1000000;
  t["horizon_days"] = 180;
  t["starts_per_day"] = 10;
  t["upgrades_per_year"] = 4;
  t["human_rate_per_hour"] = 120;
  t["machine_rate_per_hour"] = 4;
  t["human_cost"] = "included";
  t["tuning_cost"] = "included";
  t["accepted_by"] = "";
  t["accepted_on"] = "";
  return t.dump(2) + "\n";
}

bool Objective::is_accepted() const {
  return accepted_by.find_first_not_of(" \t\r\n") != std::string::npos && !accepted_on.empty();
}

bool is_date(const std::string& text) { return parse_date(text).has_value(); }

int days_between(const std::string& from, const std::string& to) {
  const auto a = parse_date(from), b = parse_date(to);
  return a && b ? static_cast<int>((*b - *a).count()) : 0;
}

Result<std::optional<Registration>> find_registration(const std::filesystem::path& folder, const Objective& objective) {
  const std::filesystem::path path = folder / "objectives.jsonl";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  const Result<std::vector<std::string>> lines = read_lines(path);
  if (!lines) return std::unexpected(lines.error());
  std::optional<Registration> found;
  for (const std::string& line : *lines) {
    const json entry = json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("measured_before") || !entry["measured_before"].is_number_unsigned()) {
      return fail(DiagnosticCode::E1661,
                  fmt::format("{} has a line that is no registration: {}", path.string(), line.substr(0, 80)));
    }
    const auto before = entry["measured_before"].get<uint64_t>();
    const std::string at = entry.value("at", "");
    if (entry.value("digest", "") == objective.digest) {
      if (!found || before == 0) found = Registration{objective.digest, at, before, ""};
    } else if (found && before == 0 && entry.value("case", json()) == case_of(objective)) {
      found->superseded_at = at;
    }
  }
  return found;
}

Status register_objective(const std::filesystem::path& folder, const Objective& objective, uint64_t measured_before) {
  const Result<std::optional<Registration>> known = find_registration(folder, objective);
  if (!known) return std::unexpected(known.error());
  if (*known && (*known)->superseded_at.empty()) return {};
  Result<LineLog> log = LineLog::open(folder / "objectives.jsonl");
  if (!log) return std::unexpected(log.error());
  return log->append(json{{"digest", objective.digest},
                          {"at", bench::utc_now()},
                          {"measured_before", measured_before},
                          {"case", case_of(objective)},
                          {"accepted_by", objective.accepted_by},
                          {"accepted_on", objective.accepted_on}}
                         .dump());
}

}  // namespace tilewright::decision
