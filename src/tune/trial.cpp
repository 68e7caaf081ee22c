#include "tune/trial.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace tilewright::tune {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"ok", "refused", "compile-failed", "wrong", "crashed", "hung"};

}  // namespace

std::string_view name(TrialState state) { return kNames[static_cast<size_t>(state)]; }

std::optional<TrialState> parse_trial_state(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<TrialState>(i);
  }
  return std::nullopt;
}

nlohmann::json to_json(const Trial& trial) {
  nlohmann::json json = {{"point", trial.point},
                         {"config", to_json(trial.config)},
                         {"state", name(trial.state)},
                         {"compile_ms", trial.compile_ms},
                         {"spent_ms", trial.spent_ms}};
  if (!trial.reason.empty()) json["reason"] = trial.reason;
  if (!trial.artefact_digest.empty()) json["artefact_digest"] = trial.artefact_digest;
  if (!trial.is_ok()) return json;
  json["median_ms"] = trial.median_ms;
  json["ci_ms"] = {trial.ci_low_ms, trial.ci_high_ms};
  json["n"] = trial.samples_ms.size();
  json["samples_ms"] = trial.samples_ms;
  json["stop_reason"] = trial.stop_reason;
  json["output_digest"] = trial.output_digest;
  return json;
}

Result<Trial> trial_from_json(const nlohmann::json& json) {
  const auto refuse = [&](const char* what) {
    return fail(DiagnosticCode::E1652, fmt::format("not a trial ({}): {}", what, json.dump().substr(0, 120)));
  };
  Trial trial;
  try {
    trial.point = json.at("point").get<size_t>();
    const std::optional<TrialState> state = parse_trial_state(json.at("state").get<std::string>());
    if (!state) return refuse("unknown state");
    trial.state = *state;
    Result<Config> config = config_from_json(json.at("config"));
    if (!config) return std::unexpected(config.error());
    trial.config = std::move(*config);
    trial.compile_ms = json.at("compile_ms").get<double>();
    trial.spent_ms = json.at("spent_ms").get<double>();
    trial.reason = json.value("reason", "");
    trial.artefact_digest = json.value("artefact_digest", "");
    if (!trial.is_ok()) return trial;
    trial.samples_ms = json.at("samples_ms").get<std::vector<double>>();
    trial.median_ms = json.at("median_ms").get<double>();
    trial.ci_low_ms = json.at("ci_ms").at(0).get<double>();
    trial.ci_high_ms = json.at("ci_ms").at(1).get<double>();
    trial.stop_reason = json.at("stop_reason").get<std::string>();
    trial.output_digest = json.at("output_digest").get<std::string>();
  } catch (const nlohmann::json::exception& error) {
    return refuse(error.what());
  }
  return trial;
}

}  // namespace tilewright::tune
