// The decision: ADOPT, REJECT or INSUFFICIENT, clause by clause, with what would flip it.
//
// ADOPT only if every clause holds on measured, unstale cells; REJECT if a measured clause is violated; else
// INSUFFICIENT, and each open clause says which command would close it. Evidence of `--budget quick` can violate a
// clause but never make it hold; so can an objective that was not registered before the first measurement. A claim is
// never evidence. Pure: the same objective and evidence give the same decision.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/decision/evidence.h"

namespace tilewright::decision {

enum class Verdict : uint8_t { Adopt, Reject, Insufficient };
std::string_view name(Verdict verdict);  ///< "ADOPT"

enum class Finding : uint8_t { Holds, Violated, Open };
std::string_view name(Finding finding);

struct Clause {
  std::string name;
  Finding finding = Finding::Open;
  std::string text;            ///< with the numbers
  std::string command;         ///< of an open clause: what would close it
  std::vector<uint64_t> seqs;  ///< the cells it rests on
};

/// What an event costs, in ms of machine time, and after how many calls that is repaid.
struct Repayment {
  double cost_ms = 0;
  BreakEven calls;
};
/// "not-run" where a part of the cost, or the saving itself, was not measured: that part is never 0.
std::string to_string(const std::optional<Repayment>& repayment);

struct BreakEvens {
  std::optional<Repayment> per_start, per_upgrade, per_adoption;
};

/// reference − candidate per call, in ms.
struct Saving {
  double value = 0, low = 0, high = 0;
  double reference_ms = 0;
};

struct Flip {
  std::string knob;
  double now = 0, at = 0;
  Verdict becomes = Verdict::Insufficient;
};

struct Amdahl {
  double share = 0;           ///< of the model's time spent in the operator
  double predicted_gain = 0;  ///< of the model, from the operator's ratio
  double largest_gain = 0;    ///< if the operator took no time
  std::optional<double> measured_gain;
  std::optional<std::pair<double, double>> measured_ci;  ///< 95 %; of a pair only
};

/// One way to go on, with this case's numbers.
struct PolicyOption {
  std::string name;  ///< "keep the reference", "adopt, pinned", "adopt, adaptive"
  std::string best_when, main_risk;
  std::vector<std::pair<std::string, std::string>> numbers;  ///< a number nobody measured reads "not-run"
};

struct Decision {
  Verdict verdict = Verdict::Insufficient;
  std::vector<Clause> clauses;
  BreakEvens break_evens;
  std::optional<Saving> saving;
  std::vector<Flip> flips;
  std::optional<Amdahl> amdahl;
  std::vector<PolicyOption> options;
  bool is_post_hoc = false;
  double gain = 0, gain_low = 0, gain_high = 0;  ///< 1 − candidate / reference; all 0 when unknown
};

Decision decide(const Objective& objective, const Evidence& evidence);

/// The content of decision.json.
nlohmann::json to_json(const Decision& decision, const Objective& objective, const Evidence& evidence);

}  // namespace tilewright::decision
