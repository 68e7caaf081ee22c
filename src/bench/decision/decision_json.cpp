// decision.json: everything a decision rests on, for the report and for other programs.
#include "bench/decision/decide.h"

namespace tilewright::decision {

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
      {"last_seq", evidence.last_seq},
      {"cost_entries", evidence.cost_entries},
      {"post_hoc", decision.is_post_hoc},
      {"paired", evidence.is_paired},
      {"gain", {{"value", decision.gain}, {"ci", {decision.gain_low, decision.gain_high}}}},
      {"clauses", std::move(clauses)},
      {"flips", std::move(flips)},
      {"options", std::move(options)},
      {"horizon_calls", objective.calls_per_day * objective.horizon_days}};
  for (const auto& [event, repayment] : {std::pair{"per_start", &decision.break_evens.per_start},
                                         {"per_upgrade", &decision.break_evens.per_upgrade},
                                         {"per_adoption", &decision.break_evens.per_adoption}}) {
    json["break_even"][event] = *repayment ? to_json((*repayment)->calls) : nlohmann::json("not-run");
    json["costs_ms"][event] = *repayment ? nlohmann::json((*repayment)->cost_ms) : nlohmann::json("not-run");
  }
  if (decision.saving) {
    json["saving_ms"] = {{"value", decision.saving->value},
                         {"ci", {decision.saving->low, decision.saving->high}},
                         {"reference", decision.saving->reference_ms}};
  }
  if (!evidence.unfair.empty()) json["unfair"] = evidence.unfair;
  for (const ExcludedRival& rival : evidence.excluded)
    json["excluded_rivals"].push_back({{"name", rival.name}, {"why", rival.why}});
  for (const auto& [rival, value] : evidence.rivals)
    json["rivals"].push_back({{"name", rival}, {objective.metric, value}});
  if (decision.amdahl) {
    json["amdahl"] = {{"share", decision.amdahl->share},
                      {"predicted_gain", decision.amdahl->predicted_gain},
                      {"largest_gain", decision.amdahl->largest_gain},
                      {"measured_gain", decision.amdahl->measured_gain ? nlohmann::json(*decision.amdahl->measured_gain)
                                                                       : nlohmann::json("not-run")}};
    if (decision.amdahl->measured_ci) json["amdahl"]["measured_ci"] = *decision.amdahl->measured_ci;
  }
  return json;
}

}  // namespace tilewright::decision
