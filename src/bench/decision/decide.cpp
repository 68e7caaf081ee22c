#include "bench/decision/decide.h"

#include <algorithm>

#include "bench/decision/clauses.h"
#include "bench/decision/flips.h"
#include "bench/decision/policy_guide.h"
#include "measure/order_statistics.h"

namespace tilewright::decision {

using bench::Cell;
using bench::Stage;

namespace {

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
  const nlohmann::json& detail = it->second.detail;
  nlohmann::json share = detail.value("share", nlohmann::json());
  const auto model_detail = detail.find("model");  // of an older record: the share lies in there
  if (share.is_null() && model_detail != detail.end() && model_detail->is_object())
    share = model_detail->value("share", nlohmann::json());
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
  // In turn within one process, when that was done: else each by itself.
  const bool is_paired = model_detail != detail.end() && model_detail->is_object() && model_detail->contains("gate");
  if (is_paired) {
    const double speedup = model_detail->value("measured_speedup", 0.0);
    if ((*model_detail)["gate"].value("passed", false) && speedup > 0) {
      amdahl.measured_gain = 1 - 1 / speedup;
      const nlohmann::json phases = model_detail->value("phases", nlohmann::json::array());
      if (!phases.empty() && phases.back().contains("paired")) {
        const nlohmann::json& whole = phases.back()["paired"];
        amdahl.measured_ci = {1 - whole.value("high95", 1.0), 1 - whole.value("low95", 1.0)};
      }
    }
  } else if (model && usual && *usual->value > 0) {
    amdahl.measured_gain = 1 - *model->value / *usual->value;
  }
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

std::string to_string(const std::optional<Repayment>& repayment) {
  return repayment ? to_string(repayment->calls) : "not-run";
}

Decision decide(const Objective& objective, const Evidence& evidence) {
  Decision decision;
  Judgement found = judge(objective, evidence);
  decision.clauses = std::move(found.clauses);
  decision.verdict = verdict_of(decision.clauses);
  decision.break_evens = found.break_evens;
  if (found.gain) {
    decision.gain = found.gain->value;
    decision.gain_low = found.gain->low;
    decision.gain_high = found.gain->high;
  }
  decision.is_post_hoc =
      evidence.first_measured_seq > 0 && (!evidence.registration || evidence.registration->measured_before > 0);
  decision.flips = find_flips(objective, evidence, decision.verdict);
  decision.saving = saving_of(evidence.draws);
  decision.amdahl = predict_model(evidence);
  decision.options = policy_options(objective, evidence, decision);
  return decision;
}

}  // namespace tilewright::decision
