#include "bench/decision/clauses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tilewright::decision {

using bench::Cell;
using bench::Stage;
using bench::State;

namespace {

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

/// As the record was measured, and into the same record: without these words the answer would land elsewhere.
std::string record_words(const Evidence& evidence) {
  std::string words;
  for (const auto& [stage, cell] : evidence.cells) {
    if (!cell.detail.is_object() || !cell.detail.contains("threads")) continue;
    words = fmt::format(" --threads {}", cell.detail.value("threads", 1));
    break;
  }
  if (!evidence.folder.empty() && evidence.folder != "out") words += " --out " + evidence.folder;
  return words;
}

/// The command that measures what an open clause lacks.
std::string bench_command(const Evidence& evidence, Stage stage, const Cell* cell) {
  if (cell && !cell->how_to_run.empty()) return cell->how_to_run;
  const std::string candidate = spelling_of(evidence.candidate, evidence.cells);
  if (stage == Stage::Tune)
    return fmt::format("tilewright tune {}{} --space space.json", candidate, workload_words(evidence));
  std::string rival;
  if (!evidence.reference_cells.empty())
    rival = " --reference " + spelling_of(evidence.reference, evidence.reference_cells);
  return fmt::format("tilewright bench {}{}{} --budget full{}", candidate, workload_words(evidence), rival,
                     record_words(evidence));
}

std::string compare_command(const Evidence& evidence) {
  const std::string words = record_words(evidence);
  return fmt::format("tilewright compare {} {}{} --rounds 400{}{}", spelling_of(evidence.candidate, evidence.cells),
                     spelling_of(evidence.reference, evidence.reference_cells), workload_words(evidence), words,
                     words.find("--out") == std::string::npos ? " --out out" : "");
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

  /// What rests on a difference of two times says nothing, either way, where identical code looked different or the
  /// noise was too wide to tell.
  Clause rest_on_gate(Clause clause) const {
    if (!evidence_.failed_gate) return clause;
    clause.finding = Finding::Open;
    clause.text += "; the A/A gate of the comparison failed: this machine was too noisy to say so";
    clause.command = compare_command(evidence_);
    clause.seqs.push_back(evidence_.failed_gate->seq);
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
    return rest_on(rest_on_gate(std::move(clause)),
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
    clause = rest_on_gate(std::move(clause));
    for (const Stage stage : stages) clause = rest_on(std::move(clause), {evidence_.measured(stage)});
    return rest_on(std::move(clause), {evidence_.measured_reference(metric_)});
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

}  // namespace

Judgement judge(const Objective& objective, const Evidence& evidence, const WhatIf& what_if) {
  Judge judge(objective, evidence, what_if);
  std::vector<Clause> clauses = judge.clauses();
  return {std::move(clauses), judge.gain(), judge.break_evens()};
}

Verdict verdict_of(const std::vector<Clause>& clauses) {
  const auto any = [&](Finding finding) {
    return std::ranges::any_of(clauses, [&](const Clause& c) { return c.finding == finding; });
  };
  if (any(Finding::Violated)) return Verdict::Reject;
  return any(Finding::Open) ? Verdict::Insufficient : Verdict::Adopt;
}

}  // namespace tilewright::decision
