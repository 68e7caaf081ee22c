// What became of one configuration: a line of tune.jsonl.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "tune/config.h"

namespace tilewright::tune {

enum class TrialState : uint8_t {
  Ok,             ///< correct and timed
  Refused,        ///< the target cannot run it (an E2xxx of the compiler)
  CompileFailed,  ///< the compiler failed otherwise
  Wrong,          ///< a result the oracle rejects: no time exists
  Crashed,        ///< the process died
  Hung,           ///< killed after its time limit
};
std::string_view name(TrialState state);
std::optional<TrialState> parse_trial_state(std::string_view text);

struct Trial {
  size_t point = 0;  ///< index into Space::points()
  Config config;
  TrialState state = TrialState::Ok;
  std::string reason;  ///< of every state but Ok
  double compile_ms = 0;
  std::vector<double> samples_ms;
  double median_ms = 0;  ///< of Ok
  double ci_low_ms = 0, ci_high_ms = 0;
  std::string stop_reason;
  std::string artefact_digest;
  std::string output_digest;  ///< of the output's bits for the check's first seed
  double spent_ms = 0;        ///< wall time this trial cost, compile and check included

  bool is_ok() const { return state == TrialState::Ok; }
};

nlohmann::json to_json(const Trial& trial);
Result<Trial> trial_from_json(const nlohmann::json& json);

}  // namespace tilewright::tune
