#include "bench/decision/repayment.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/decision/closing_command.h"

namespace tilewright::decision {

using bench::Cell;
using bench::Stage;

std::optional<Lacking> find_lacking(const Objective& objective, const Evidence& evidence, Event event) {
  const auto unmeasured = [&](Stage stage) {
    return Lacking{fmt::format("{} was not measured", bench::info(stage).metric), bench_command(evidence, stage)};
  };
  if (evidence.draws.empty()) return unmeasured(*bench::parse_stage(objective.metric));
  if (!evidence.compile_ms()) return unmeasured(Stage::Compile);
  if (event == Event::Start || objective.is_tuning_cost_excluded) return std::nullopt;
  if (!evidence.measured(Stage::Tune)) return unmeasured(Stage::Tune);
  if (event == Event::Upgrade && evidence.cost.measured_entries == 0)
    return Lacking{"re-validation was not run", validate_command(evidence)};
  return std::nullopt;
}

std::optional<double> human_cost_ms(const Objective& objective, const Evidence& evidence, const WhatIf& what_if) {
  if (objective.is_human_cost_excluded) return 0;
  if (evidence.cost.declared_entries == 0 || !objective.human_rate_per_hour || !objective.machine_rate_per_hour)
    return std::nullopt;
  const double years = objective.horizon_days / 365;
  const double hours =
      evidence.cost.adoption_hours + evidence.cost.upkeep_hours * std::max(1.0, years * objective.upgrades_per_year);
  return what_if.hours * hours * *objective.human_rate_per_hour / *objective.machine_rate_per_hour * 3.6e6;
}

BreakEvens compute_break_evens(const Objective& objective, const Evidence& evidence, const WhatIf& what_if) {
  const Cell* compile = evidence.measured(Stage::Compile);
  const Cell* tune = evidence.measured(Stage::Tune);
  const Cell* first_call = evidence.measured(Stage::FirstCall);
  const double tune_ms = tune && !objective.is_tuning_cost_excluded ? *tune->value : 0;
  const double validate_ms = objective.is_tuning_cost_excluded ? 0 : evidence.cost.validate_ms;
  // A benchmark's compile_ms has the first call's excess in it already: work put off is still compiling.
  const bool is_within = compile && compile->detail.is_object() && compile->detail.contains("compile_call_ms");
  const double first_ms = first_call && !is_within ? *first_call->value : 0;
  const auto repay = [&](Event event, double fixed_ms) -> std::optional<Repayment> {
    if (find_lacking(objective, evidence, event)) return std::nullopt;
    return Repayment{what_if.scale.compile * *evidence.compile_ms() + fixed_ms,
                     break_even(evidence.draws, {1, fixed_ms}, what_if.scale)};
  };
  BreakEvens all{repay(Event::Start, first_ms), repay(Event::Upgrade, tune_ms + validate_ms), std::nullopt};
  if (const std::optional<double> human_ms = human_cost_ms(objective, evidence, what_if))
    all.per_adoption = repay(Event::Adoption, tune_ms + *human_ms);
  return all;
}

}  // namespace tilewright::decision
