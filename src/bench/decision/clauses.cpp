#include "bench/decision/clauses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/decision/closing_command.h"
#include "bench/decision/repayment.h"

namespace tilewright::decision {

using bench::Cell;
using bench::Stage;
using bench::State;

namespace {

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
    all.push_back(
        repaid("repaid per process start", break_evens().per_start, Event::Start,
               {objective_.calls_per_day / std::max(objective_.starts_per_day, 1e-9), "calls between starts"}));
    all.push_back(repaid(
        "repaid per toolchain upgrade", break_evens().per_upgrade, Event::Upgrade,
        {objective_.calls_per_day * 365 / std::max(objective_.upgrades_per_year, 1e-9), "calls between upgrades"}));
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
    if (!break_evens_) break_evens_ = compute_break_evens(objective_, evidence_, what_if_);
    return *break_evens_;
  }

 private:
  Clause open(std::string clause_name, std::string text, std::string command) const {
    return {std::move(clause_name), Finding::Open, std::move(text), std::move(command), {}};
  }

  /// Why a cell cannot carry a verdict; empty: it can.
  std::string weakness_of(const Cell& cell) const {
    if (cell.qualifiers.stale) return "stale";
    if (cell.qualifiers.relaxed) return "measured under a relaxed rule";
    if (cell.stop_reason == "timeout") return "stopped by timeout";
    if (cell.qualifiers.declared) return "declared, not measured";
    if (cell.candidate != evidence_.candidate || cell.stage == Stage::Check) return "";
    const auto check = evidence_.cells.find(Stage::Check);
    const bool has_own_check = cell.stage == Stage::Tune || cell.stage == Stage::Model;
    if (!has_own_check && check != evidence_.cells.end() && cell.seq < check->second.seq)
      return fmt::format("older than the last check (#{} before #{})", cell.seq, check->second.seq);
    const Cell* timed = evidence_.measured(metric_);
    if (has_own_check || !timed || timed->stage == Stage::Model) return "";
    const auto field = unfair_field(*timed, cell);
    return field ? fmt::format("not of the same run as {} ({})", objective_.metric, *field) : "";
  }

  /// Turns a clause into an open one when its cells are stale, hurried, timed out or of something else.
  Clause rest_on(Clause clause, std::initializer_list<const Cell*> cells) const {
    for (const Cell* cell : cells) {
      if (!cell) continue;
      clause.seqs.push_back(cell->seq);
      if (const std::string weak = weakness_of(*cell); !weak.empty()) {
        clause.finding = Finding::Open;
        clause.text += fmt::format("; {} is {}", bench::info(cell->stage).metric, weak);
        clause.command = bench_command(evidence_, cell->stage);
      } else if (is_quick(*cell) && clause.finding == Finding::Holds) {
        const std::string budget = cell->detail.is_object() ? cell->detail.value("budget", "") : "";
        clause.finding = Finding::Open;
        clause.text += fmt::format("; on {} evidence, which can reject but not adopt",
                                   budget.empty() ? "no stated budget's" : budget);
        clause.command = bench_command(evidence_, cell->stage);
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
      return open("correct", "correctness was not run", bench_command(evidence_, Stage::Check));
    }
    const Cell& cell = it->second;
    const bool is_right = is_accepted(cell);
    Clause clause{"correct",
                  is_right ? Finding::Holds : Finding::Violated,
                  is_right ? "accepted by the oracle" : fmt::format("rejected by the oracle: {}", cell.reason),
                  "",
                  {}};
    return rest_on(std::move(clause), {&cell});
  }

  /// Who was measured too, and who was but may not count.
  std::string rivals_text() const {
    std::string text;
    if (!objective_.reference.empty() && objective_.reference != evidence_.reference) {
      text += fmt::format("; the objective names {}, but {} is faster and correct", objective_.reference,
                          evidence_.reference);
    }
    for (const auto& [rival, value] : evidence_.rivals) {
      if (rival != evidence_.reference) text += fmt::format("; {} {:.4g} ms", rival, value);
    }
    for (const ExcludedRival& rival : evidence_.excluded)
      text += fmt::format("; {} does not count: {}", rival.name, rival.why);
    return text;
  }

  Clause without_reference(std::string clause_name) const {
    std::string text = objective_.reference.empty() ? fmt::format("no rival has a measured {}", objective_.metric)
                                                    : fmt::format("the objective's reference {} has no measured {}",
                                                                  objective_.reference, objective_.metric);
    for (const ExcludedRival& rival : evidence_.excluded)
      text += fmt::format("; {} does not count: {}", rival.name, rival.why);
    if (evidence_.claimed_cells)
      text += fmt::format("; the {} claims on file are no measurements", evidence_.claimed_cells);
    return open(std::move(clause_name), std::move(text), bench_command(evidence_, metric_));
  }

  /// What keeps the interval of the gain from being what it says; empty: nothing.
  std::string weak_interval(const Cell& ours, const Cell& theirs) const {
    if (!evidence_.ratio_failure.empty()) return "the latest pairing failed: " + evidence_.ratio_failure;
    const size_t processes = std::min(ours.samples.size(), theirs.samples.size());
    if (!evidence_.is_paired && processes < 6)
      return fmt::format("{} processes, and a 95 % interval needs 6", processes);
    return "";
  }

  Clause gain_clause() const {
    const std::string clause_name =
        fmt::format("{} {} gain >= {:.1f} %", objective_.percentile, objective_.metric, 100 * objective_.min_gain);
    if (evidence_.reference.empty()) return without_reference(clause_name);
    const std::optional<Gain> found = gain();
    const Cell *ours = evidence_.measured(metric_), *theirs = evidence_.measured_reference(metric_);
    if (!found || !ours || !theirs) {
      const bool has_both = ours && theirs;
      const std::string why = has_both && objective_.percentile == "p99"
                                  ? "too few samples for p99 (percentile-unsupported)"
                              : has_both ? "the samples were not kept: a lone value has no spread"
                                         : "not measured on both sides";
      return open(clause_name, why, bench_command(evidence_, metric_));
    }
    Clause clause{clause_name, Finding::Open, "", "", {}};
    clause.text = fmt::format("{:+.1f} % [{:+.1f}, {:+.1f}] against {}{}", 100 * found->value, 100 * found->low,
                              100 * found->high, evidence_.reference, rivals_text());
    if (found->low >= objective_.min_gain)
      clause.finding = Finding::Holds;
    else if (found->high < objective_.min_gain)
      clause.finding = Finding::Violated;
    else
      clause.command = compare_command(evidence_);
    if (const std::string weak = weak_interval(*ours, *theirs); !weak.empty() && clause.finding == Finding::Holds) {
      clause.finding = Finding::Open;
      clause.text += "; " + weak;
      clause.command = bench_command(evidence_, metric_);
    }
    return fairly(
        rest_on(rest_on_gate(std::move(clause)), {ours, theirs, evidence_.ratio ? &*evidence_.ratio : nullptr}));
  }

  /// Nothing that compares the two sides stands when they were not measured under the same conditions.
  Clause fairly(Clause clause) const {
    if (evidence_.unfair.empty()) return clause;
    clause.finding = Finding::Open;
    clause.text += "; " + evidence_.unfair;
    clause.command = bench_command(evidence_, metric_);
    return clause;
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
    if (!cell) return open(clause_name, "not measured", bench_command(evidence_, metric_));
    if (!evidence_.tail) {
      return open(clause_name, "its samples were not kept", bench_command(evidence_, metric_));
    }
    const Tail& tail = *evidence_.tail;
    const double f = what_if_.scale.candidate;
    if (!tail.p99_upper) {
      Clause clause = open(clause_name, fmt::format("{} samples do not support a p99 (percentile-unsupported)", tail.n),
                           bench_command(evidence_, metric_));
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
                  fmt::format("{:.4g} ms, at most {:.4g} ms with confidence 0.99{}", point, upper,
                              cell->n > tail.n ? fmt::format(" ({} of {} samples were kept)", tail.n, cell->n) : ""),
                  "",
                  {}};
    if (clause.finding == Finding::Open) clause.command = bench_command(evidence_, metric_);
    return rest_on(std::move(clause), {cell});
  }

  Clause peak() const {
    const std::string clause_name = fmt::format("peak memory <= {} MiB", *objective_.peak_mb);
    const Cell* cell = evidence_.measured(Stage::Peak);
    if (!cell) return open(clause_name, "not measured", bench_command(evidence_, Stage::Peak));
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
      if (!cell && stage == Stage::Compile && evidence_.compile_ms()) continue;  // precompiled
      if (!cell) {
        return open(clause_name, fmt::format("{} was not measured", bench::info(stage).metric),
                    bench_command(evidence_, stage));
      }
      const bool is_within = stage == Stage::FirstCall && cells.back()->detail.contains("compile_call_ms");
      if (!is_within) total_ms += *cell->value * (stage == Stage::Compile ? what_if_.scale.compile : 1);
      cells.push_back(cell);
    }
    if (const Cell* device = evidence_.measured(Stage::DeviceInit)) total_ms += *device->value;
    return rest_on({clause_name,
                    total_ms <= *objective_.warmup_s * 1e3 ? Finding::Holds : Finding::Violated,
                    fmt::format("{:.4g} s from process start to the first warm call, nothing cached", total_ms / 1e3),
                    "",
                    {}},
                   {cells.front(), evidence_.measured(Stage::Compile), cells.back()});
  }

  /// How many calls there are to repay an event with.
  struct Calls {
    double count;
    const char* what;
  };

  Clause repaid(std::string clause_name, const std::optional<Repayment>& repayment, Event event,
                const Calls& calls) const {
    if (!repayment) {
      Lacking missing = *find_lacking(objective_, evidence_, event);
      return open(std::move(clause_name), std::move(missing.what), std::move(missing.command));
    }
    const BreakEven& value = repayment->calls;
    Clause clause{std::move(clause_name),
                  Finding::Open,
                  fmt::format("{}; there are {:.4g} {}",
                              value.is_never() ? "never" : fmt::format("after {} calls", to_string(value)), calls.count,
                              calls.what),
                  "",
                  {}};
    if (value.high && *value.high <= calls.count)
      clause.finding = Finding::Holds;
    else if (value.is_never() || *value.low > calls.count)
      clause.finding = Finding::Violated;
    else
      clause.command = compare_command(evidence_);
    const bool has_tuning = event != Event::Start && !objective_.is_tuning_cost_excluded;
    if (event != Event::Start && objective_.is_tuning_cost_excluded)
      clause.text += " (tuning and re-validation excluded by the objective)";
    return fairly(rest_on(rest_on_gate(std::move(clause)),
                          {evidence_.measured(Stage::Compile), has_tuning ? evidence_.measured(Stage::Tune) : nullptr,
                           evidence_.measured(metric_), evidence_.measured_reference(metric_)}));
  }

  Clause adoption() {
    const std::string clause_name = "repaid within the horizon, people's hours included";
    if (!human_cost_ms(objective_, evidence_, what_if_)) {
      const bool lacks_rates = evidence_.cost.declared_entries > 0;
      return open(clause_name,
                  lacks_rates ? "the objective has no human_rate_per_hour and machine_rate_per_hour"
                              : "no human cost is recorded",
                  lacks_rates ? "add both rates to the objective, and have it accepted" : cost_command(evidence_));
    }
    Clause clause = repaid(clause_name, break_evens().per_adoption, Event::Adoption,
                           {objective_.calls_per_day * objective_.horizon_days, "calls in the horizon"});
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
      return open(clause_name, "nothing was measured yet", bench_command(evidence_, metric_));
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
    const std::string registered_on = evidence_.registration->at.substr(0, 10);
    if (days_between(registered_on, objective_.accepted_on) > 1) {  // one day: the clocks of two time zones
      return open(clause_name,
                  fmt::format("accepted on {}, after it was registered on {}", objective_.accepted_on, registered_on),
                  "state the day of the acceptance, register, and measure again in a new folder");
    }
    if (!evidence_.registration->superseded_at.empty()) {
      return open(clause_name,
                  fmt::format("another objective for the same case was registered after it, {}",
                              evidence_.registration->superseded_at),
                  "decide on the last objective registered before measuring");
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
