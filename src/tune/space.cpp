#include "tune/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.h"

namespace tilewright::tune {
namespace {

constexpr size_t kMaxPoints = 1'000'000;
constexpr const char* kHelp =
    R"(write {"params": [{"name": "block_M", "values": [64, 128]}], "constraints": ["block_M <= M"]})";

Result<Parameter> parameter_from_json(const nlohmann::json& json) {
  const auto refuse = [&](std::string_view what) {
    return fail(DiagnosticCode::E1650, fmt::format("parameter {}: {}", json.dump().substr(0, 80), what), kHelp);
  };
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return refuse("has no \"name\"");
  if (!json.contains("values") || !json["values"].is_array()) return refuse("has no list \"values\"");
  Parameter parameter;
  parameter.name = json["name"].get<std::string>();
  const auto read = [&](const nlohmann::json& value) -> Result<Value> {
    Result<Config> one = config_from_json(nlohmann::json{{parameter.name, value}});
    if (!one) return std::unexpected(one.error());
    return one->values().front().second;
  };
  for (const nlohmann::json& entry : json["values"]) {
    Result<Value> value = read(entry);
    if (!value) return std::unexpected(value.error());
    parameter.values.push_back(*value);
  }
  if (json.contains("default")) {
    Result<Value> value = read(json["default"]);
    if (!value) return std::unexpected(value.error());
    parameter.default_value = *value;
  }
  return parameter;
}

Status check_parameters(const std::vector<Parameter>& parameters) {
  std::set<std::string> names;
  size_t total = 1;
  for (const Parameter& parameter : parameters) {
    const auto refuse = [&](std::string_view what) {
      return fail(DiagnosticCode::E1650, fmt::format("parameter '{}' {}", parameter.name, what), kHelp);
    };
    if (!names.insert(parameter.name).second) return refuse("is declared twice");
    if (parameter.values.empty()) return refuse("has no value");
    for (size_t i = 0; i < parameter.values.size(); ++i) {
      if (std::find(parameter.values.begin(), parameter.values.begin() + static_cast<ptrdiff_t>(i),
                    parameter.values[i]) != parameter.values.begin() + static_cast<ptrdiff_t>(i)) {
        return refuse(fmt::format("lists {} twice", to_string(parameter.values[i])));
      }
    }
    if (parameter.default_value && std::find(parameter.values.begin(), parameter.values.end(),
                                             *parameter.default_value) == parameter.values.end()) {
      return refuse(fmt::format("has the default {}, which is not in its list", to_string(*parameter.default_value)));
    }
    total *= parameter.values.size();
    if (total > kMaxPoints) {
      return fail(DiagnosticCode::E1650,
                  fmt::format("the space has more than {} points before constraints", kMaxPoints),
                  "shorten the value lists");
    }
  }
  return {};
}

}  // namespace

Result<Space> Space::from_json(const nlohmann::json& json, std::vector<std::pair<std::string, int64_t>> dims) {
  if (!json.is_object() || !json.contains("params") || !json["params"].is_array()) {
    return fail(DiagnosticCode::E1650, "the space has no list \"params\"", kHelp);
  }
  std::vector<Parameter> parameters;
  for (const nlohmann::json& entry : json["params"]) {
    Result<Parameter> parameter = parameter_from_json(entry);
    if (!parameter) return std::unexpected(parameter.error());
    parameters.push_back(std::move(*parameter));
  }
  std::vector<Constraint> constraints;
  for (const nlohmann::json& entry : json.value("constraints", nlohmann::json::array())) {
    const bool is_text = entry.is_string();
    if (!is_text && !(entry.is_object() && entry.contains("expr") && entry["expr"].is_string())) {
      return fail(DiagnosticCode::E1650,
                  fmt::format("constraint {} is neither text nor {{\"expr\", \"reason\"}}", entry.dump()), kHelp);
    }
    Result<Constraint> constraint =
        is_text ? Constraint::parse(entry.get<std::string>())
                : Constraint::parse(entry["expr"].get<std::string>(), entry.value("reason", ""));
    if (!constraint) return std::unexpected(constraint.error());
    constraints.push_back(std::move(*constraint));
  }
  return make(std::move(parameters), std::move(constraints), std::move(dims));
}

Result<Space> Space::make(std::vector<Parameter> parameters, std::vector<Constraint> constraints,
                          std::vector<std::pair<std::string, int64_t>> dims) {
  if (Status status = check_parameters(parameters); !status) return std::unexpected(status.error());
  Space space;
  space.parameters_ = std::move(parameters);
  space.constraints_ = std::move(constraints);
  space.dims_ = std::move(dims);
  if (Status status = space.enumerate(); !status) return std::unexpected(status.error());
  nlohmann::json identity = nlohmann::json::array();
  for (const Parameter& parameter : space.parameters_) {
    std::vector<std::pair<std::string, Value>> values;
    for (const Value& value : parameter.values) values.emplace_back(parameter.name, value);
    const Value initial = parameter.default_value.value_or(parameter.values.front());
    identity.push_back({to_json(Config(std::move(values))), to_json(Config({{parameter.name, initial}}))});
  }
  for (const Constraint& constraint : space.constraints_) identity.push_back(constraint.text());
  for (const auto& [name, extent] : space.dims_) identity.push_back({name, extent});
  space.digest_ = sha256_hex(identity.dump());
  return space;
}

Status Space::enumerate() {
  std::vector<size_t> at(parameters_.size(), 0);
  for (;;) {
    std::vector<std::pair<std::string, Value>> values;
    for (size_t i = 0; i < parameters_.size(); ++i)
      values.emplace_back(parameters_[i].name, parameters_[i].values[at[i]]);
    std::vector<std::pair<std::string, Value>> bound = values;
    for (const auto& [name, extent] : dims_) bound.emplace_back(name, extent);
    const Config bindings(std::move(bound));
    const Constraint* broken = nullptr;
    for (const Constraint& constraint : constraints_) {
      const Result<bool> holds = constraint.holds(bindings);
      if (!holds) return std::unexpected(holds.error());
      if (!*holds && !broken) broken = &constraint;
    }
    if (broken) {
      pruned_.push_back({Config(std::move(values)), broken->reason()});
    } else {
      points_.emplace_back(std::move(values));
    }
    size_t digit = parameters_.size();
    while (digit > 0 && ++at[digit - 1] == parameters_[digit - 1].values.size()) at[--digit] = 0;
    if (digit == 0) return {};
  }
}

void Space::prune(const Pruner& pruner) {
  std::vector<Config> kept;
  for (Config& config : points_) {
    std::optional<std::string> reason = pruner(config);
    if (reason) {
      pruned_.push_back({std::move(config), std::move(*reason)});
    } else {
      kept.push_back(std::move(config));
    }
  }
  points_ = std::move(kept);
}

std::optional<size_t> Space::find(const Config& config) const {
  for (size_t i = 0; i < points_.size(); ++i) {
    const auto& values = points_[i].values();
    const bool equal = values.size() == config.values().size() && std::ranges::all_of(values, [&](const auto& entry) {
                         const Value* other = config.find(entry.first);
                         return other && *other == entry.second;
                       });
    if (equal) return i;
  }
  return std::nullopt;
}

std::optional<size_t> Space::default_point() const {
  std::vector<std::pair<std::string, Value>> values;
  for (const Parameter& parameter : parameters_) {
    values.emplace_back(parameter.name, parameter.default_value.value_or(parameter.values.front()));
  }
  return find(Config(std::move(values)));
}

std::vector<size_t> Space::neighbours(size_t point) const {
  std::vector<size_t> found;
  for (size_t digit = 0; digit < parameters_.size(); ++digit) {
    const std::vector<Value>& list = parameters_[digit].values;
    const auto here = std::find(list.begin(), list.end(), points_[point].values()[digit].second) - list.begin();
    for (const ptrdiff_t step : {-1, 1}) {
      if (here + step < 0 || here + step >= std::ssize(list)) continue;
      auto values = points_[point].values();
      values[digit].second = list[static_cast<size_t>(here + step)];
      if (const std::optional<size_t> index = find(Config(std::move(values)))) found.push_back(*index);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tilewright::tune
