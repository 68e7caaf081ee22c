#include "bench/decision/evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bench/record/cell_log.h"
#include "measure/order_statistics.h"

namespace tilewright::decision {

using bench::Cell;
using bench::Stage;
using bench::State;

namespace {

const Cell* measured_in(const std::map<Stage, Cell>& cells, Stage stage) {
  const auto it = cells.find(stage);
  return it != cells.end() && it->second.state == State::Measured && it->second.value ? &it->second : nullptr;
}

bool matches(const Objective& objective, const bench::Subject& subject) {
  const auto fits = [](const std::string& wanted, const std::string& found) {
    return wanted.empty() || wanted == found;
  };
  return fits(objective.shape, subject.shape) && fits(objective.dtype, subject.dtype) &&
         fits(objective.device, subject.device);
}

Result<bench::Subject> find_subject(const Objective& objective, const std::vector<Cell>& cells) {
  std::set<bench::Subject> subjects;
  for (const Cell& cell : cells) {
    if (cell.candidate == objective.candidate && matches(objective, cell.subject)) subjects.insert(cell.subject);
  }
  if (subjects.size() == 1) return *subjects.begin();
  if (subjects.empty()) return bench::Subject{objective.shape, objective.dtype, objective.device};
  std::vector<std::string> names;
  for (const bench::Subject& s : subjects) names.push_back(fmt::format("{} {} {}", s.shape, s.dtype, s.device));
  return fail(DiagnosticCode::E1661,
              fmt::format("the objective fits {} workloads of '{}': {}", subjects.size(), objective.candidate,
                          fmt::join(names, "; ")),
              "name shape, dtype and device in the objective");
}

/// One value per round or process: process medians when there are several processes, else the samples themselves.
/// A lone value without samples says nothing of its spread: no unit.
std::vector<double> units_of(const Cell& cell) {
  if (cell.samples.empty()) return {};
  if (cell.samples.size() < 3) return flat_samples(cell);
  std::vector<double> medians;
  for (const std::vector<double>& process : cell.samples) {
    if (!process.empty()) medians.push_back(measure::median(measure::sorted(process)));
  }
  return medians;
}

std::string thread_count(const Cell& cell) {
  const nlohmann::json threads =
      cell.detail.is_object() ? cell.detail.value("threads", nlohmann::json()) : nlohmann::json();
  return threads.is_number_integer() ? threads.dump() : "";
}

/// Why a rival's time is no evidence; empty: it is.
std::string why_excluded(const std::vector<Cell>& latest, const Cell& timed) {
  const auto check = std::ranges::find_if(latest, [&](const Cell& cell) {
    return cell.stage == Stage::Check && cell.candidate == timed.candidate && cell.subject == timed.subject;
  });
  if (check == latest.end() || check->state == State::NotRun) return "its result was never checked";
  if (!is_accepted(*check)) return fmt::format("its result is wrong: {}", check->reason);
  if (check->seq > timed.seq) return "it was checked again, and not timed since";
  return "";
}

void choose_reference(const Objective& objective, const std::vector<Cell>& latest, Evidence& evidence) {
  const Stage stage = *bench::parse_stage(objective.metric);
  for (const Cell& cell : latest) {
    const bool is_rival = cell.subject == evidence.subject && cell.candidate != objective.candidate &&
                          cell.stage == stage && cell.state == State::Measured && cell.value;
    if (!is_rival) continue;
    if (std::string why = why_excluded(latest, cell); !why.empty())
      evidence.excluded.push_back({cell.candidate, std::move(why)});
    else
      evidence.rivals.emplace_back(cell.candidate, *cell.value);
  }
  std::ranges::sort(evidence.rivals, {}, &std::pair<std::string, double>::second);
  const auto named = std::ranges::find(evidence.rivals, objective.reference, &std::pair<std::string, double>::first);
  const bool waits_for_named = !objective.reference.empty() && named == evidence.rivals.end();
  if (!waits_for_named && !evidence.rivals.empty()) evidence.reference = evidence.rivals.front().first;
}

/// The latest pairing, when it is one against the reference and of what was timed.
void choose_ratio(const Objective& objective, Evidence& evidence) {
  const auto it = evidence.cells.find(Stage::Ratio);
  if (it == evidence.cells.end() || evidence.reference.empty()) return;
  const Cell& ratio = it->second;
  const Cell* ours = evidence.measured(*bench::parse_stage(objective.metric));
  if (ours && ratio.seq < ours->seq) return;  // of what was there before
  if (ratio.state == State::Failed) {
    evidence.ratio_failure = ratio.reason;
    if (ratio.reason.starts_with("noise")) evidence.failed_gate = ratio;
  }
  if (ratio.state != State::Measured || ratio.detail.value("rival", "") != evidence.reference) return;
  const Cell* theirs = evidence.measured_reference(*bench::parse_stage(objective.metric));
  const std::string version = ratio.detail.value("rival_version", "");
  const bool is_other_rival = theirs && !version.empty() && theirs->detail.value("version", version) != version;
  if (!is_other_rival) evidence.ratio = ratio;
}

/// Rule 2, where the verdict is made: both sides, and their pairing, under one contract, environment and thread count.
std::string find_unfair(const Objective& objective, const Evidence& evidence) {
  const Stage stage = *bench::parse_stage(objective.metric);
  const Cell* ours = evidence.measured(stage);
  if (!ours) return "";
  for (const Cell* other : {evidence.measured_reference(stage), evidence.ratio ? &*evidence.ratio : nullptr}) {
    if (!other) continue;
    if (const auto field = unfair_field(*ours, *other))
      return fmt::format("unfair:{} ({} of {}, {} of {})", *field, objective.metric, ours->candidate,
                         bench::info(other->stage).metric, other->candidate);
  }
  return "";
}

std::optional<Tail> tail_of(const Cell* cell) {
  if (!cell || cell->samples.empty()) return std::nullopt;
  const std::vector<double> samples = measure::sorted(flat_samples(*cell));
  if (samples.empty()) return std::nullopt;
  return Tail{std::ssize(samples), measure::median(samples), measure::percentile(samples, 0.99),
              measure::supported_percentile(samples, 0.99)};
}

void draw(const Objective& objective, const EvidenceInput& input, Evidence& evidence) {
  const Stage stage = *bench::parse_stage(objective.metric);
  const Cell* compile = evidence.measured(Stage::Compile);
  std::vector<double> compiles = compile ? units_of(*compile) : std::vector<double>{};
  if (compile && compiles.empty()) compiles.push_back(*compile->value);
  // A paired comparison keeps both sides of each round: samples[0] the candidate, samples[1] the reference.
  if (stage == Stage::Warm && evidence.ratio && evidence.ratio->samples.size() == 2 &&
      evidence.ratio->samples[0].size() == evidence.ratio->samples[1].size() && !evidence.ratio->samples[0].empty()) {
    evidence.is_paired = true;
    evidence.draws = draw_medians(evidence.ratio->samples[0], evidence.ratio->samples[1], true, compiles, input.draws);
    return;
  }
  const Cell* ours = evidence.measured(stage);
  const Cell* theirs = evidence.measured_reference(stage);
  if (!ours || !theirs) return;
  const std::vector<double> a = units_of(*ours), b = units_of(*theirs);
  if (!a.empty() && !b.empty()) evidence.draws = draw_medians(a, b, false, compiles, input.draws);
}

}  // namespace

const Cell* Evidence::measured(Stage stage) const { return measured_in(cells, stage); }
std::optional<double> Evidence::compile_ms() const {
  const auto it = cells.find(Stage::Compile);
  if (it != cells.end() && bench::is_precompiled(it->second)) return 0;
  const Cell* cell = measured(Stage::Compile);
  return cell ? cell->value : std::nullopt;
}
const Cell* Evidence::measured_reference(Stage stage) const { return measured_in(reference_cells, stage); }

std::vector<double> flat_samples(const Cell& cell) {
  std::vector<double> all;
  for (const std::vector<double>& process : cell.samples) all.insert(all.end(), process.begin(), process.end());
  if (all.empty() && cell.value) all.push_back(*cell.value);
  return all;
}

bool is_accepted(const Cell& check) {
  const bool is_refused = check.detail.is_object() && !check.detail.value("reference_ok", true);
  return check.state == State::Measured && !is_refused && (!check.value || *check.value != 0);
}

bool is_quick(const Cell& cell) {
  const std::string budget = cell.detail.is_object() ? cell.detail.value("budget", "") : "";
  const bool has_its_own = cell.stage == Stage::Model || cell.stage == Stage::Tune || cell.stage == Stage::Ratio;
  return budget.empty() ? !has_its_own : budget != "full";
}

std::optional<std::string> unfair_field(const Cell& one, const Cell& other) {
  const auto brief = [](const std::string& text) {
    return text.empty() ? std::string("none") : text.size() > 12 ? text.substr(0, 12) + "…" : text;
  };
  const std::string threads = thread_count(one), other_threads = thread_count(other);
  for (const auto& [field, a, b] : {std::tuple<const char*, const std::string&, const std::string&>{
                                        "contract", one.contract_digest, other.contract_digest},
                                    {"environment", one.environment_digest, other.environment_digest},
                                    {"threads", threads, other_threads}}) {
    if (a != b) return fmt::format("{}: {} against {}", field, brief(a), brief(b));
  }
  return std::nullopt;
}

Result<Evidence> collect(const Objective& objective, const EvidenceInput& input) {
  Evidence evidence;
  evidence.candidate = objective.candidate;
  evidence.registration = input.registration;
  evidence.replay = input.replay;
  evidence.folder = input.folder;
  evidence.cost_entries = input.costs.size();
  evidence.cost = summarise(input.costs, objective.candidate);
  const Result<bench::Subject> subject = find_subject(objective, input.cells);
  if (!subject) return std::unexpected(subject.error());
  evidence.subject = *subject;
  for (const Cell& cell : input.cells) {
    if (cell.state == State::Claimed) ++evidence.claimed_cells;
    evidence.last_seq = std::max(evidence.last_seq, cell.seq);
    // The check of a result is not yet a measurement of cost: the objective may still be written.
    const bool counts = cell.state == State::Measured && cell.stage != Stage::Check && cell.stage != Stage::Roofline;
    if (counts && evidence.first_measured_seq == 0) evidence.first_measured_seq = cell.seq;
  }
  std::vector<Cell> facts;
  for (const Cell& cell : input.cells) {
    if (cell.state != State::Claimed && !cell.qualifiers.simulated) facts.push_back(cell);
  }
  const std::vector<Cell> latest = bench::latest_cells(facts);
  choose_reference(objective, latest, evidence);
  for (const Cell& cell : latest) {
    if (cell.subject != evidence.subject) continue;
    if (cell.candidate == objective.candidate) evidence.cells[cell.stage] = cell;
    if (cell.candidate == evidence.reference) evidence.reference_cells[cell.stage] = cell;
  }
  choose_ratio(objective, evidence);
  evidence.unfair = find_unfair(objective, evidence);
  evidence.tail = tail_of(evidence.measured(*bench::parse_stage(objective.metric)));
  evidence.reference_tail = tail_of(evidence.measured_reference(*bench::parse_stage(objective.metric)));
  draw(objective, input, evidence);
  return evidence;
}

}  // namespace tilewright::decision
