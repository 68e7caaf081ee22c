#include "bench/decision/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "bench/decision/policy_guide.h"
#include "measure/order_statistics.h"

namespace tilewright::decision {

using bench::Cell;
using bench::Stage;
using bench::State;

namespace {

/// What-if multipliers on the evidence.
struct WhatIf {
  Scale scale;
  double peak = 1;
  double hours = 1;
};

struct Gain {
  double value = 0, low = 0, high = 0;
};

/// How the command line spells a candidate of the record.
std::string spelling_of(const std::string& candidate, const std::map<Stage, Cell>& cells) {
  for (const auto& [stage, cell] : cells) {
    if (cell.detail.is_object() && cell.detail.contains("spelling")) return cell.detail.value("spelling", candidate);
  }
  return candidate;
}

std::string workload_words(const Evidence& evidence) {
  if (evidence.subject.shape.empty()) return "";
  return fmt::format(" --op {} --dtype {}", evidence.subject.shape, evidence.subject.dtype);
}

/// The command that measures what an open clause lacks.
std::string bench_command(const Evidence& evidence, Stage stage, const Cell* cell) {
  if (cell && !cell->how_to_run.empty()) return cell->how_to_run;
  const std::string candidate = spelling_of(evidence.candidate, evidence.cells);
  if (stage == Stage::Tune)
    return fmt::format("tilewright tune {}{} --space space.json", candidate, workload_words(evidence));
  return fmt::format("tilewright bench {}{} --budget full", candidate, workload_words(evidence));
}

std::string compare_command(const Evidence& evidence) {
  return fmt::format("tilewright compare {} {}{} --rounds 400", spelling_of(evidence.candidate, evidence.cells),
                     spelling_of(evidence.reference, evidence.reference_cells), workload_words(evidence));
}

class Judge {
 public:
  Judge(const Objective& objective, const Evidence& evidence, const WhatIf& what_if)
      : objective_(objective), evidence_(evidence), what_if_(what_if), metric_(*bench::parse_stage(objective.metric)) {}

  std::vector<Clause> clauses() {
    std::vector<Clause> all;
    all.push_back(correctness());
    all.push_back(gain_clause());
    if (objective_.slo_ms) all.push_back(slo());
    if (objective_.peak_mb) all.push_back(peak());
    if (objective_.warmup_s) all.push_back(warm_up());
    all.push_back(repaid("repaid per process start", break_evens().per_start,
                         objective_.calls_per_day / std::max(objective_.starts_per_day, 1e-9), "calls between starts",
                         {Stage::Compile, metric_}));
    all.push_back(repaid("repaid per toolchain upgrade", break_evens().per_upgrade,
                         objective_.calls_per_day * 365 / std::max(objective_.upgrades_per_year, 1e-9),
                         "calls between upgrades", {Stage::Compile, Stage::Tune, metric_}));
    all.push_back(adoption());
    all.push_back(acceptance());
    return all;
  }

  std::optional<Gain> gain() const {
    if (objective_.percentile == "p99") return gain_at_p99();
    if (evidence_.draws.empty()) return std::nullopt;
    std::vector<double> gains;
    for (const Draw& draw : evidence_.draws) {
      if (draw.reference_ms > 0)
        gains.push_back(1 -
                        what_if_.scale.candidate * draw.candidate_ms / (what_if_.scale.reference * draw.reference_ms));
    }
    if (gains.empty()) return std::nullopt;
    const auto at = [&](double p) {
      const auto nth = gains.begin() + static_cast<ptrdiff_t>(p * static_cast<double>(gains.size() - 1));
      std::nth_element(gains.begin(), nth, gains.end());
      return *nth;
    };
    return Gain{at(0.5), at(0.025), at(0.975)};
  }

  const BreakEvens& break_evens() {
    if (!break_evens_) break_evens_ = compute_break_evens();
    return *break_evens_;
  }

 private:
  BreakEvens compute_break_evens() const {
    BreakEvens all;
    const Cell* tune = evidence_.measured(Stage::Tune);
    const Cell* first_call = evidence_.measured(Stage::FirstCall);
    const Cell* compile = evidence_.measured(Stage::Compile);
    const double compile_ms = compile ? what_if_.scale.compile * *compile->value : 0;
    const double tune_ms = tune ? *tune->value : 0, first_ms = first_call ? *first_call->value : 0;
    const std::optional<double> human_ms = human_cost_ms();
    const auto repay = [&](double fixed_ms, double& cost_ms) {
      cost_ms = compile_ms + fixed_ms;
      return break_even(evidence_.draws, {1, fixed_ms}, what_if_.scale);
    };
    all.per_start = repay(first_ms, all.start_ms);
    all.per_upgrade = repay(tune_ms + evidence_.cost.validate_ms, all.upgrade_ms);
    all.has_adoption = human_ms.has_value();
    if (human_ms) all.per_adoption = repay(tune_ms + *human_ms, all.adoption_ms);
    return all;
  }

  /// Human hours expressed in ms of machine time by the two rates; nothing when they are unknown.
  std::optional<double> human_cost_ms() const {
    if (objective_.is_human_cost_excluded) return 0;
    if (evidence_.cost.declared_entries == 0 || !objective_.human_rate_per_hour || !objective_.machine_rate_per_hour)
      return std::nullopt;
    const double years = objective_.horizon_days / 365;
    const double hours = evidence_.cost.adoption_hours +
                         evidence_.cost.upkeep_hours * std::max(1.0, years * objective_.upgrades_per_year);
    return what_if_.hours * hours * *objective_.human_rate_per_hour / *objective_.machine_rate_per_hour * 3.6e6;
  }

  Clause open(std::string clause_name, std::string text, std::string command) const {
    return {std::move(clause_name), Finding::Open, std::move(text), std::move(command), {}};
  }

  /// Turns a holding clause into an open one when its cells are stale, hurried or timed out.
  Clause rest_on(Clause clause, std::initializer_list<const Cell*> cells) const {
    for (const Cell* cell : cells) {
      if (!cell) continue;
      clause.seqs.push_back(cell->seq);
      const bool is_stale = cell->qualifiers.stale;
      const char* weak = is_stale                         ? "stale"
                         : cell->qualifiers.relaxed       ? "measured under a relaxed rule"
                         : cell->stop_reason == "timeout" ? "stopped by timeout"
                         : cell->qualifiers.declared      ? "declared, not measured"
                                                          : nullptr;
      if (weak) {
        clause.finding = Finding::Open;
        clause.text += fmt::format("; {} is {}", bench::info(cell->stage).metric, weak);
        clause.command = bench_command(evidence_, cell->stage, cell);
      } else if (is_quick(*cell) && clause.finding == Finding::Holds) {
        clause.finding = Finding::Open;
        clause.text += "; on quick evidence, which can reject but not adopt";
        clause.command = bench_command(evidence_, cell->stage, nullptr);
      }
    }
    return clause;
  }

  Clause correctness() const {
    const auto it = evidence_.cells.find(Stage::Check);
    if (it == evidence_.cells.end() || it->second.state == State::NotRun) {
      return open("correct", "correctness was not run",
                  bench_command(evidence_, Stage::Check, it == evidence_.cells.end() ? nullptr : &it->second));
    }
    const Cell& cell = it->second;
    const bool is_right = cell.state == State::Measured && (!cell.value || *cell.value != 0);
    Clause clause{"correct",
                  is_right ? Finding::Holds : Finding::Violated,
                  is_right ? "accepted by the oracle" : fmt::format("rejected by the oracle: {}", cell.reason),
                  "",
                  {}};
    return rest_on(std::move(clause), {&cell});
  }

  Clause gain_clause() const {
    const std::string clause_name =
        fmt::format("{} {} gain >= {:.1f} %", objective_.percentile, objective_.metric, 100 * objective_.min_gain);
    const std::optional<Gain> found = gain();
    const Cell* ours = evidence_.measured(metric_);
    if (evidence_.reference.empty()) {
      const std::string claims =
          evidence_.claimed_cells ? fmt::format("; the {} claims on file are no measurements", evidence_.claimed_cells)
                                  : "";
      return open(clause_name, fmt::format("no rival has a measured {}{}", objective_.metric, claims),
                  bench_command(evidence_, metric_, nullptr));
    }
    if (!found) {
      const auto it = evidence_.cells.find(metric_);
      const std::string why = objective_.percentile == "p99" && ours
                                  ? "too few samples for p99 (percentile-unsupported)"
                                  : "not measured on both sides";
      return open(clause_name, why,
                  bench_command(evidence_, metric_, it != evidence_.cells.end() ? &it->second : nullptr));
    }
    Clause clause{clause_name, Finding::Open, "", "", {}};
    clause.text = fmt::format("{:+.1f} % [{:+.1f}, {:+.1f}] against {}", 100 * found->value, 100 * found->low,
                              100 * found->high, evidence_.reference);
    if (found->low >= objective_.min_gain)
      clause.finding = Finding::Holds;
    else if (found->high < objective_.min_gain)
      clause.finding = Finding::Violated;
    else
      clause.command = compare_command(evidence_);
    return rest_on(std::move(clause),
                   {ours, evidence_.measured_reference(metric_), evidence_.ratio ? &*evidence_.ratio : nullptr});
  }

  std::optional<Gain> gain_at_p99() const {
    const std::optional<Tail>&ours = evidence_.tail, &theirs = evidence_.reference_tail;
    if (!ours || !theirs || !ours->p99_upper || !theirs->p99_upper) return std::nullopt;
    const double f = what_if_.scale.candidate / what_if_.scale.reference;
    return Gain{1 - f * ours->p99 / theirs->p99, 1 - f * *ours->p99_upper / theirs->p99,
                1 - f * ours->p99 / *theirs->p99_upper};
  }

  Clause slo() const {
    const std::string clause_name = fmt::format("p99 {} <= {} ms", objective_.metric, *objective_.slo_ms);
    const Cell* cell = evidence_.measured(metric_);
    if (!cell) return open(clause_name, "not measured", bench_command(evidence_, metric_, nullptr));
    if (!evidence_.tail) {
      return open(clause_name, "its samples were not kept", bench_command(evidence_, metric_, nullptr));
    }
    const Tail& tail = *evidence_.tail;
    const double f = what_if_.scale.candidate;
    if (!tail.p99_upper) {
      Clause clause = open(clause_name, fmt::format("{} samples do not support a p99 (percentile-unsupported)", tail.n),
                           bench_command(evidence_, metric_, nullptr));
      // A median above the limit needs no percentile.
      if (f * tail.median > *objective_.slo_ms) {
        clause.finding = Finding::Violated;
        clause.text += fmt::format("; the median alone is {:.4g} ms", f * tail.median);
      }
      return rest_on(std::move(clause), {cell});
    }
    const double upper = f * *tail.p99_upper, point = f * tail.p99;
    Clause clause{clause_name,
                  upper <= *objective_.slo_ms  ? Finding::Holds
                  : point > *objective_.slo_ms ? Finding::Violated
                                               : Finding::Open,
                  fmt::format("{:.4g} ms, at most {:.4g} ms with confidence 0.99", point, upper),
                  "",
                  {}};
    if (clause.finding == Finding::Open) clause.command = bench_command(evidence_, metric_, nullptr);
    return rest_on(std::move(clause), {cell});
  }

  Clause peak() const {
    const std::string clause_name = fmt::format("peak memory <= {} MiB", *objective_.peak_mb);
    const Cell* cell = evidence_.measured(Stage::Peak);
    if (!cell) return open(clause_name, "not measured", bench_command(evidence_, Stage::Peak, nullptr));
    const double value = what_if_.peak * *cell->value;
    return rest_on({clause_name,
                    value <= *objective_.peak_mb ? Finding::Holds : Finding::Violated,
                    fmt::format("{:.4g} MiB", value),
                    "",
                    {}},
                   {cell});
  }

  Clause warm_up() const {
    const std::string clause_name = fmt::format("warm-up <= {} s", *objective_.warmup_s);
    constexpr std::array kParts = {Stage::Import, Stage::Compile, Stage::FirstCall};
    double total_ms = 0;
    std::vector<const Cell*> cells;
    for (const Stage stage : kParts) {
      const Cell* cell = evidence_.measured(stage);
      if (!cell) {
        return open(clause_name, fmt::format("{} was not measured", bench::info(stage).metric),
                    bench_command(evidence_, stage, nullptr));
      }
      total_ms += *cell->value * (stage == Stage::Compile ? what_if_.scale.compile : 1);
      cells.push_back(cell);
    }
    if (const Cell* device = evidence_.measured(Stage::DeviceInit)) total_ms += *device->value;
    return rest_on({clause_name,
                    total_ms <= *objective_.warmup_s * 1e3 ? Finding::Holds : Finding::Violated,
                    fmt::format("{:.4g} s from process start to the first warm call, nothing cached", total_ms / 1e3),
                    "",
                    {}},
                   {cells[0], cells[1], cells[2]});
  }

  Clause repaid(std::string clause_name, const BreakEven& value, double calls, const char* what,
                std::vector<Stage> stages) const {
    if (evidence_.draws.empty() || !evidence_.measured(Stage::Compile)) {
      const Stage lacking = evidence_.draws.empty() ? metric_ : Stage::Compile;
      return open(std::move(clause_name), fmt::format("{} was not measured", bench::info(lacking).metric),
                  bench_command(evidence_, lacking, nullptr));
    }
    Clause clause{std::move(clause_name),
                  Finding::Open,
                  fmt::format("after {} calls; there are {:.4g} {}", to_string(value), calls, what),
                  "",
                  {}};
    if (value.high && *value.high <= calls)
      clause.finding = Finding::Holds;
    else if (value.is_never() || *value.low > calls)
      clause.finding = Finding::Violated;
    else
      clause.command = compare_command(evidence_);
    for (const Stage stage : stages) clause = rest_on(std::move(clause), {evidence_.measured(stage)});
    return clause;
  }

  Clause adoption() {
    const std::string clause_name = "repaid within the horizon, people's hours included";
    const BreakEvens& all = break_evens();
    if (!all.has_adoption) {
      const bool lacks_rates = evidence_.cost.declared_entries > 0;
      return open(clause_name,
                  lacks_rates ? "the objective has no human_rate_per_hour and machine_rate_per_hour"
                              : "no human cost is recorded",
                  lacks_rates ? "add both rates to the objective, and have it accepted"
                              : fmt::format("tilewright cost add --candidate {} --kind port --hours H --by NAME",
                                            evidence_.candidate));
    }
    Clause clause = repaid(clause_name, all.per_adoption, objective_.calls_per_day * objective_.horizon_days,
                           "calls in the horizon", {Stage::Compile, Stage::Tune, metric_});
    if (objective_.is_human_cost_excluded) clause.text += " (human cost excluded by the objective)";
    return clause;
  }

  Clause acceptance() const {
    const std::string clause_name = "objective accepted before the first measurement";
    if (!objective_.is_accepted()) {
      return open(clause_name, "nobody has accepted the objective",
                  "fill accepted_by and accepted_on, then tilewright decide --register objective.json");
    }
    if (evidence_.first_measured_seq == 0) {
      return open(clause_name, "nothing was measured yet", bench_command(evidence_, metric_, nullptr));
    }
    if (!evidence_.registration) {
      return open(clause_name, "post-hoc: this text was not registered before measuring",
                  "measure again in a new folder after tilewright decide --register objective.json");
    }
    if (evidence_.registration->measured_before > 0) {
      return open(clause_name,
                  fmt::format("post-hoc: {} cells were measured before it was registered",
                              evidence_.registration->measured_before),
                  "measure again in a new folder after tilewright decide --register objective.json");
    }
    return {clause_name,
            Finding::Holds,
            fmt::format("by {} on {}, registered {}", objective_.accepted_by, objective_.accepted_on,
                        evidence_.registration->at),
            "",
            {}};
  }

  const Objective& objective_;
  const Evidence& evidence_;
  const WhatIf& what_if_;
  Stage metric_;
  std::optional<BreakEvens> break_evens_;
};

Verdict verdict_of(const std::vector<Clause>& clauses) {
  const auto any = [&](Finding finding) {
    return std::ranges::any_of(clauses, [&](const Clause& c) { return c.finding == finding; });
  };
  if (any(Finding::Violated)) return Verdict::Reject;
  return any(Finding::Open) ? Verdict::Insufficient : Verdict::Adopt;
}

/// A number of the case that can be turned, one at a time.
struct Knob {
  std::string name;
  double now;
  std::function<void(Objective&, WhatIf&, double factor)> turn;
};

std::vector<Knob> knobs_of(const Objective& objective, const Evidence& evidence) {
  std::vector<Knob> knobs = {
      {"calls_per_day", objective.calls_per_day, [](Objective& o, WhatIf&, double f) { o.calls_per_day *= f; }},
      {"horizon_days", objective.horizon_days, [](Objective& o, WhatIf&, double f) { o.horizon_days *= f; }},
      {"starts_per_day", objective.starts_per_day, [](Objective& o, WhatIf&, double f) { o.starts_per_day *= f; }},
      {"min_gain", objective.min_gain,
       [](Objective& o, WhatIf&, double f) { o.min_gain = std::min(0.999, o.min_gain * f); }}};
  const auto optional_knob = [&](const char* label, std::optional<double> Objective::*member) {
    if (objective.*member)
      knobs.push_back({label, *(objective.*member), [member](Objective& o, WhatIf&, double f) { *(o.*member) *= f; }});
  };
  optional_knob("slo_ms", &Objective::slo_ms);
  optional_knob("peak_mb cap", &Objective::peak_mb);
  optional_knob("warmup_s cap", &Objective::warmup_s);
  optional_knob("human_rate_per_hour", &Objective::human_rate_per_hour);
  if (const Cell* cell = evidence.measured(*bench::parse_stage(objective.metric))) {
    knobs.push_back({"candidate " + objective.metric, *cell->value,
                     [](Objective&, WhatIf& w, double f) { w.scale.candidate *= f; }});
  }
  if (const Cell* cell = evidence.measured_reference(*bench::parse_stage(objective.metric))) {
    knobs.push_back({"reference " + objective.metric, *cell->value,
                     [](Objective&, WhatIf& w, double f) { w.scale.reference *= f; }});
  }
  if (const Cell* cell = evidence.measured(Stage::Compile)) {
    knobs.push_back({"compile_ms", *cell->value, [](Objective&, WhatIf& w, double f) { w.scale.compile *= f; }});
  }
  if (const Cell* cell = evidence.measured(Stage::Peak)) {
    knobs.push_back({"peak_mb", *cell->value, [](Objective&, WhatIf& w, double f) { w.peak *= f; }});
  }
  if (evidence.cost.hours > 0)
    knobs.push_back({"human hours", evidence.cost.hours, [](Objective&, WhatIf& w, double f) { w.hours *= f; }});
  return knobs;
}

class FlipFinder {
 public:
  FlipFinder(const Objective& objective, const Evidence& evidence, Verdict now)
      : objective_(objective), evidence_(evidence), now_(now) {
    // Hundreds of verdicts are asked for: a thousand draws place the flip well enough.
    if (evidence_.draws.size() > kDraws) evidence_.draws.resize(kDraws);
  }

  /// The nearest factor in each direction, on a grid of thirds of an octave up to 1000, then by bisection.
  std::vector<Flip> find(const Knob& knob) const {
    std::vector<Flip> flips;
    for (const double direction : {-1.0, 1.0}) {
      double before = 1;
      for (int step = 1; step <= 30; ++step) {
        const double factor = std::exp2(direction * step / 3.0);
        const Verdict verdict = verdict_at(knob, factor);
        if (verdict == now_) {
          before = factor;
          continue;
        }
        flips.push_back(refine(knob, before, factor));
        break;
      }
    }
    return flips;
  }

 private:
  Verdict verdict_at(const Knob& knob, double factor) const {
    Objective objective = objective_;
    WhatIf what_if;
    knob.turn(objective, what_if, factor);
    return verdict_of(Judge(objective, evidence_, what_if).clauses());
  }

  Flip refine(const Knob& knob, double same, double other) const {
    for (int i = 0; i < 12; ++i) {
      const double middle = std::sqrt(same * other);
      (verdict_at(knob, middle) == now_ ? same : other) = middle;
    }
    return {knob.name, knob.now, knob.now * other, verdict_at(knob, other)};
  }

  static constexpr size_t kDraws = 1000;
  const Objective& objective_;
  Evidence evidence_;
  Verdict now_;
};

std::optional<Saving> saving_of(const std::vector<Draw>& draws) {
  if (draws.empty()) return std::nullopt;
  std::vector<double> savings, references;
  for (const Draw& draw : draws) {
    savings.push_back(draw.reference_ms - draw.candidate_ms);
    references.push_back(draw.reference_ms);
  }
  std::ranges::sort(savings);
  std::ranges::sort(references);
  return Saving{measure::percentile(savings, 0.5), measure::percentile(savings, 0.025),
                measure::percentile(savings, 0.975), measure::median(references)};
}

std::optional<Amdahl> predict_model(const Evidence& evidence) {
  const auto it = evidence.cells.find(Stage::Model);
  if (it == evidence.cells.end() || !it->second.detail.is_object()) return std::nullopt;
  const nlohmann::json& share = it->second.detail.value("share", nlohmann::json());
  const Cell* ours = evidence.measured(Stage::Warm);
  const Cell* theirs = evidence.measured_reference(Stage::Warm);
  if (!share.is_number() || !ours || !theirs || *theirs->value <= 0) return std::nullopt;
  Amdahl amdahl;
  amdahl.share = share.get<double>();
  const double ratio = *ours->value / *theirs->value;
  amdahl.predicted_gain = amdahl.share * (1 - ratio);
  amdahl.largest_gain = amdahl.share;
  const Cell* model = evidence.measured(Stage::Model);
  const Cell* usual = evidence.measured_reference(Stage::Model);
  if (model && usual && *usual->value > 0) amdahl.measured_gain = 1 - *model->value / *usual->value;
  return amdahl;
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Adopt: return "ADOPT";
    case Verdict::Reject: return "REJECT";
    case Verdict::Insufficient: return "INSUFFICIENT";
  }
  return "";
}

std::string_view name(Finding finding) {
  switch (finding) {
    case Finding::Holds: return "holds";
    case Finding::Violated: return "violated";
    case Finding::Open: return "open";
  }
  return "";
}

Decision decide(const Objective& objective, const Evidence& evidence) {
  Decision decision;
  const WhatIf as_is;
  Judge judge(objective, evidence, as_is);
  decision.clauses = judge.clauses();
  decision.verdict = verdict_of(decision.clauses);
  decision.break_evens = judge.break_evens();
  if (const std::optional<Gain> gain = judge.gain()) {
    decision.gain = gain->value;
    decision.gain_low = gain->low;
    decision.gain_high = gain->high;
  }
  decision.is_post_hoc =
      evidence.first_measured_seq > 0 && (!evidence.registration || evidence.registration->measured_before > 0);
  const FlipFinder finder(objective, evidence, decision.verdict);
  for (const Knob& knob : knobs_of(objective, evidence)) {
    for (Flip& flip : finder.find(knob)) decision.flips.push_back(std::move(flip));
  }
  decision.saving = saving_of(evidence.draws);
  decision.amdahl = predict_model(evidence);
  decision.options = policy_options(objective, evidence, decision);
  return decision;
}

nlohmann::json to_json(const Decision& decision, const Objective& objective, const Evidence& evidence) {
  nlohmann::json clauses = nlohmann::json::array(), flips = nlohmann::json::array(), options = nlohmann::json::array();
  for (const Clause& c : decision.clauses) {
    clauses.push_back(
        {{"name", c.name}, {"finding", name(c.finding)}, {"text", c.text}, {"command", c.command}, {"seqs", c.seqs}});
  }
  for (const Flip& f : decision.flips)
    flips.push_back({{"knob", f.knob}, {"now", f.now}, {"at", f.at}, {"becomes", name(f.becomes)}});
  for (const PolicyOption& o : decision.options) {
    nlohmann::json numbers = nlohmann::json::object();
    for (const auto& [label, value] : o.numbers) numbers[label] = value;
    options.push_back(
        {{"name", o.name}, {"best_when", o.best_when}, {"main_risk", o.main_risk}, {"numbers", std::move(numbers)}});
  }
  nlohmann::json json = {
      {"kind", "decision"},
      {"verdict", name(decision.verdict)},
      {"candidate", evidence.candidate},
      {"reference", evidence.reference},
      {"subject",
       {{"shape", evidence.subject.shape}, {"dtype", evidence.subject.dtype}, {"device", evidence.subject.device}}},
      {"objective_digest", objective.digest},
      {"post_hoc", decision.is_post_hoc},
      {"paired", evidence.is_paired},
      {"gain", {{"value", decision.gain}, {"ci", {decision.gain_low, decision.gain_high}}}},
      {"clauses", std::move(clauses)},
      {"flips", std::move(flips)},
      {"options", std::move(options)},
      {"horizon_calls", objective.calls_per_day * objective.horizon_days}};
  json["break_even"] = {{"per_start", to_json(decision.break_evens.per_start)},
                        {"per_upgrade", to_json(decision.break_evens.per_upgrade)}};
  json["break_even"]["per_adoption"] =
      decision.break_evens.has_adoption ? to_json(decision.break_evens.per_adoption) : nlohmann::json("not-run");
  json["costs_ms"] = {{"per_start", decision.break_evens.start_ms}, {"per_upgrade", decision.break_evens.upgrade_ms}};
  json["costs_ms"]["per_adoption"] =
      decision.break_evens.has_adoption ? nlohmann::json(decision.break_evens.adoption_ms) : nlohmann::json("not-run");
  if (decision.saving) {
    json["saving_ms"] = {{"value", decision.saving->value},
                         {"ci", {decision.saving->low, decision.saving->high}},
                         {"reference", decision.saving->reference_ms}};
  }
  for (const auto& [rival, value] : evidence.rivals)
    json["rivals"].push_back({{"name", rival}, {objective.metric, value}});
  if (decision.amdahl) {
    json["amdahl"] = {{"share", decision.amdahl->share},
                      {"predicted_gain", decision.amdahl->predicted_gain},
                      {"largest_gain", decision.amdahl->largest_gain},
                      {"measured_gain", decision.amdahl->measured_gain ? nlohmann::json(*decision.amdahl->measured_gain)
                                                                       : nlohmann::json("not-run")}};
  }
  return json;
}

}  // namespace tilewright::decision
