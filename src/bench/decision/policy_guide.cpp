#include "bench/decision/policy_guide.h"

#include <fmt/format.h>

namespace tilewright::decision {
namespace {

using Numbers = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kNotRun = "not-run";

/// "41200 [38100, 45900] calls", "never", "not-run".
std::string in_calls(const std::optional<Repayment>& repayment) {
  return to_string(repayment) + (repayment && !repayment->calls.is_never() ? " calls" : "");
}

std::string hours_per_day(double ms) { return fmt::format("{:.3g} h of machine time a day", ms / 3.6e6); }

/// A field of one policy's replay, printed; "not-run" when it was not replayed.
std::string replayed(const Evidence& evidence, const char* policy, const char* field, const char* format) {
  if (!evidence.replay.is_object() || !evidence.replay.contains(policy)) return kNotRun;
  const nlohmann::json& value = evidence.replay[policy].value(field, nlohmann::json());
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : kNotRun;
}

/// Of the pinned replay, with its interval.
std::string left_on_table(const Evidence& evidence) {
  const std::string value = replayed(evidence, "pinned", "left_on_table_ms", "{:.4g} ms");
  if (value == kNotRun) return value;
  const nlohmann::json ci = evidence.replay["pinned"].value("left_on_table_ci_ms", nlohmann::json());
  const bool has_interval = ci.is_array() && ci.size() == 2 && ci[0].is_number() && ci[1].is_number();
  return has_interval ? fmt::format("{} [{:.4g}, {:.4g}]", value, ci[0].get<double>(), ci[1].get<double>()) : value;
}

std::string saved_per_day(const Objective& objective, const Evidence& evidence) {
  if (evidence.draws.empty()) return kNotRun;
  double saving = 0;
  for (const Draw& draw : evidence.draws) saving += draw.reference_ms - draw.candidate_ms;
  return hours_per_day(objective.calls_per_day * saving / static_cast<double>(evidence.draws.size()));
}

}  // namespace

std::vector<PolicyOption> policy_options(const Objective& objective, const Evidence& evidence,
                                         const Decision& decision) {
  const std::string saved = saved_per_day(objective, evidence);
  const std::string hours =
      evidence.cost.declared_entries ? fmt::format("{:.3g} h declared", evidence.cost.hours) : kNotRun;
  const bool is_validated = evidence.cost.measured_entries > 0;
  const std::string upkeep =
      is_validated ? fmt::format("{:.3g} s, {} of {} records failed, {} stale", evidence.cost.validate_ms / 1e3,
                                 evidence.cost.failures, evidence.cost.checked, evidence.cost.stale)
                   : kNotRun;
  PolicyOption keep{"keep the reference",
                    "the operator is a small share of the model, or the traffic is too thin to repay the work",
                    "the gain is left on the table every day",
                    {}};
  keep.numbers = {{saved.starts_with('-') ? "spared" : "forgone", saved.starts_with('-') ? saved.substr(1) : saved},
                  {"cost", "none"}};
  if (decision.amdahl)
    keep.numbers.emplace_back("largest gain of the model",
                              fmt::format("{:.1f} %", 100 * decision.amdahl->largest_gain));

  PolicyOption pinned{"adopt, pinned",
                      "shapes are known, results must be the same bits in every process, changes need a review",
                      "shapes outside the verified buckets run the fallback, and nobody notices",
                      {}};
  pinned.numbers = {{"saved", saved},
                    {"break-even per upgrade", in_calls(decision.break_evens.per_upgrade)},
                    {"people", hours},
                    {"re-validation", upkeep},
                    {"left on the table", left_on_table(evidence)},
                    {"fallback share", replayed(evidence, "pinned", "fallback_share", "{:.3g}")}};

  PolicyOption adaptive{"adopt, adaptive",
                        "shapes drift, telemetry is in place, and bits may differ between processes",
                        "kernels are switched at run time: latency and results can change without a release",
                        {}};
  adaptive.numbers = {{"saved", saved},
                      {"switches", replayed(evidence, "adaptive", "switches", "{:.0f}")},
                      {"unexplained switches", replayed(evidence, "adaptive", "unexplained_switches", "{:.0f}")},
                      {"distinct outputs", replayed(evidence, "adaptive", "distinct_outputs", "{:.0f}")},
                      {"time to steady state", replayed(evidence, "adaptive", "steady_at_s", "{:.3g} s")}};
  return {std::move(keep), std::move(pinned), std::move(adaptive)};
}

}  // namespace tilewright::decision
