#include "bench/record/cell.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tilewright::bench {
namespace {

using nlohmann::json;

constexpr StageInfo kStages[] = {
#define TW_STAGE(enumerator, metric, unit, words, column) {Stage::enumerator, #metric, unit, words, column},
#include "bench/record/stage.def"
#undef TW_STAGE
};

constexpr std::string_view kStates[] = {"measured", "not-run", "failed", "claimed"};

json qualifiers_json(const Qualifiers& q) {
  json list = json::array();
  if (q.stale) list.push_back("stale");
  if (q.simulated) list.push_back("simulated");
  if (q.relaxed) list.push_back("relaxed");
  if (q.declared) list.push_back("declared");
  return list;
}

bool set_qualifier(Qualifiers& q, const std::string& word) {
  if (word == "stale") return q.stale = true;
  if (word == "simulated") return q.simulated = true;
  if (word == "relaxed") return q.relaxed = true;
  if (word == "declared") return q.declared = true;
  return false;
}

std::unexpected<Diagnostic> bad(std::string_view field, std::string_view what) {
  return fail(DiagnosticCode::E1602, fmt::format("field '{}' of a cell {}", field, what));
}

/// Reads fields of one object and remembers the first that is wrong.
class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {}

  template <typename T>
  void read(const char* field, T& out, bool required = false) {
    const auto it = object_.find(field);
    if (it == object_.end() || it->is_null()) {
      if (required) note(field, "is missing");
      return;
    }
    try {
      it->get_to(out);
    } catch (const json::exception&) {
      note(field, "has the wrong type");
    }
  }
  void read(const char* field, std::optional<double>& out) {
    const auto it = object_.find(field);
    if (it == object_.end() || it->is_null()) return;
    if (!it->is_number()) return note(field, "is not a number");
    out = it->get<double>();
  }
  void note(std::string_view field, std::string_view what) {
    if (!error_) error_ = bad(field, what).error();
  }
  const std::optional<Diagnostic>& error() const { return error_; }

 private:
  const json& object_;
  std::optional<Diagnostic> error_;
};

void read_words(Reader& reader, const json& object, Cell& cell) {
  std::string metric, state;
  reader.read("metric", metric, true);
  reader.read("state", state, true);
  if (const auto parsed = parse_stage(metric))
    cell.stage = *parsed;
  else
    reader.note("metric", "is not known");
  if (const auto parsed = parse_state(state))
    cell.state = *parsed;
  else
    reader.note("state", "is not measured, not-run, failed or claimed");
  std::vector<std::string> qualifiers;
  reader.read("qualifiers", qualifiers);
  for (const std::string& word : qualifiers) {
    if (!set_qualifier(cell.qualifiers, word)) reader.note("qualifiers", "has an unknown word");
  }
  const auto ci = object.find("ci");
  if (ci == object.end() || ci->is_null()) return;
  if (ci->is_array() && ci->size() == 3 && (*ci)[0].is_number() && (*ci)[1].is_number() && (*ci)[2].is_number()) {
    cell.ci = Interval{(*ci)[0], (*ci)[1], (*ci)[2]};
  } else {
    reader.note("ci", "is not [low, high, level]");
  }
}

/// A time or a size; a ratio and a ceiling are positive too, a check has no number.
bool is_duration(Stage stage) { return info(stage).unit == "ms"; }

/// What no measurement can have given: negative, in another unit, outside its own samples.
void check_numbers(Reader& reader, const Cell& cell) {
  const auto refuse = [&](const char* field, std::string what) { reader.note(field, what); };
  const StageInfo& row = info(cell.stage);
  const bool must_be_positive = cell.stage == Stage::Warm || cell.stage == Stage::Hot || cell.stage == Stage::Ratio;
  if (cell.n < 0) refuse("n", fmt::format("is {}, a count", cell.n));
  if (cell.procs < 0) refuse("procs", fmt::format("is {}, a count", cell.procs));
  if (cell.value && (!std::isfinite(*cell.value) || *cell.value < 0 || (must_be_positive && *cell.value == 0)))
    refuse("value", fmt::format("is {}: no {} is", *cell.value, row.metric));
  if (cell.value && !row.unit.empty() && !cell.unit.empty() && cell.unit != row.unit)
    refuse("unit", fmt::format("is '{}', {} is in {}", cell.unit, row.metric, row.unit));
  if (cell.ci && (!(cell.ci->low <= cell.ci->high) || !(cell.ci->level > 0) || cell.ci->level > 1))
    refuse("ci", fmt::format("is [{}, {}] at level {}", cell.ci->low, cell.ci->high, cell.ci->level));
  double least = INFINITY, most = -INFINITY;
  for (const std::vector<double>& process : cell.samples) {
    for (const double sample : process) {
      if (!std::isfinite(sample) || sample < 0) return refuse("samples", fmt::format("has a {}", sample));
      least = std::min(least, sample);
      most = std::max(most, sample);
    }
  }
  constexpr double kRounding = 1e-9;
  const bool is_within = !cell.value || least > most || !is_duration(cell.stage) ||
                         (*cell.value >= least * (1 - kRounding) && *cell.value <= most * (1 + kRounding));
  if (!is_within) refuse("value", fmt::format("is {}, and its samples lie in [{}, {}]", *cell.value, least, most));
}

}  // namespace

const StageInfo& info(Stage stage) { return kStages[static_cast<size_t>(stage)]; }
std::span<const StageInfo> all_stages() { return kStages; }

std::optional<Stage> parse_stage(std::string_view metric) {
  for (const StageInfo& row : kStages) {
    if (row.metric == metric) return row.stage;
  }
  return std::nullopt;
}

std::string_view name(State state) { return kStates[static_cast<size_t>(state)]; }

std::optional<State> parse_state(std::string_view text) {
  for (size_t i = 0; i < std::size(kStates); ++i) {
    if (kStates[i] == text) return static_cast<State>(i);
  }
  return std::nullopt;
}

CellKey key(const Cell& cell) { return {cell.subject, cell.candidate, cell.stage}; }

bool is_precompiled(const Cell& cell) {
  return cell.stage == Stage::Compile && cell.state == State::NotRun && cell.detail.is_object() &&
         cell.detail.value("precompiled", false);
}

Cell not_run(const CellKey& key, std::string reason, std::string how_to_run) {
  Cell cell;
  cell.subject = key.subject;
  cell.candidate = key.candidate;
  cell.stage = key.stage;
  cell.unit = info(key.stage).unit;
  cell.reason = std::move(reason);
  cell.how_to_run = std::move(how_to_run);
  return cell;
}

Cell failed(const CellKey& key, std::string reason) {
  Cell cell = not_run(key, std::move(reason));
  cell.state = State::Failed;
  return cell;
}

json to_json(const Cell& cell) {
  json out;
  out["seq"] = cell.seq;
  out["shape"] = cell.subject.shape;
  out["dtype"] = cell.subject.dtype;
  out["device"] = cell.subject.device;
  out["candidate"] = cell.candidate;
  out["metric"] = info(cell.stage).metric;
  out["state"] = name(cell.state);
  if (!cell.reason.empty()) out["reason"] = cell.reason;
  if (!cell.how_to_run.empty()) out["how_to_run"] = cell.how_to_run;
  if (cell.qualifiers != Qualifiers{}) out["qualifiers"] = qualifiers_json(cell.qualifiers);
  if (cell.value && std::isfinite(*cell.value)) out["value"] = *cell.value;
  out["unit"] = cell.unit;
  if (cell.ci) out["ci"] = {cell.ci->low, cell.ci->high, cell.ci->level};
  out["n"] = cell.n;
  out["procs"] = cell.procs;
  if (!cell.stop_reason.empty()) out["stop_reason"] = cell.stop_reason;
  if (!cell.samples.empty()) out["samples"] = cell.samples;
  out["contract"] = cell.contract_digest;
  out["environment"] = cell.environment_digest;
  out["command"] = cell.command;
  out["started_at"] = cell.started_at;
  out["ended_at"] = cell.ended_at;
  if (!cell.detail.empty()) out["detail"] = cell.detail;
  return out;
}

Result<Cell> parse_cell(const json& object) {
  if (!object.is_object()) return fail(DiagnosticCode::E1602, "a cell must be a JSON object");
  Cell cell;
  Reader reader(object);
  reader.read("seq", cell.seq);
  reader.read("shape", cell.subject.shape, true);
  reader.read("dtype", cell.subject.dtype, true);
  reader.read("device", cell.subject.device, true);
  reader.read("candidate", cell.candidate, true);
  read_words(reader, object, cell);
  reader.read("reason", cell.reason);
  reader.read("how_to_run", cell.how_to_run);
  reader.read("value", cell.value);
  reader.read("unit", cell.unit);
  reader.read("n", cell.n);
  reader.read("procs", cell.procs);
  reader.read("stop_reason", cell.stop_reason);
  reader.read("samples", cell.samples);
  reader.read("contract", cell.contract_digest);
  reader.read("environment", cell.environment_digest);
  reader.read("command", cell.command);
  reader.read("started_at", cell.started_at);
  reader.read("ended_at", cell.ended_at);
  reader.read("detail", cell.detail);
  const bool may_have_value = cell.state == State::Measured || cell.state == State::Claimed;
  if (cell.value && !may_have_value) reader.note("value", "is given although the cell was not measured");
  if (!cell.value && may_have_value && cell.stage != Stage::Check)
    reader.note("value", "is missing although the cell was measured");
  if (!cell.detail.is_object()) reader.note("detail", "is not an object");
  if (may_have_value) check_numbers(reader, cell);
  if (reader.error()) return std::unexpected(*reader.error());
  return cell;
}

Status check_identity(std::string_view what, std::string_view text) {
  if (text.empty()) return fail(DiagnosticCode::E1603, fmt::format("the {} is empty", what));
  for (const char c : text) {
    if (c == ',' || c == '"' || c == '\'' || static_cast<unsigned char>(c) <= ' ' || c == 127) {
      return fail(DiagnosticCode::E1603,
                  fmt::format("the {} '{}' has a comma, quote, space or control character", what, text));
    }
  }
  return {};
}

std::string utc_now() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const auto ms = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(now)), ms);
}

}  // namespace tilewright::bench
