#include "tune/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

namespace tilewright::tune {
namespace {

std::optional<Value> value_from_json(const nlohmann::json& json) {
  if (json.is_boolean()) return Value(int64_t{json.get<bool>()});
  if (json.is_number_integer()) return Value(json.get<int64_t>());
  if (json.is_string()) return Value(json.get<std::string>());
  return std::nullopt;
}

}  // namespace

std::string to_string(const Value& value) {
  if (const int64_t* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  return std::get<std::string>(value);
}

const Value* Config::find(std::string_view name) const {
  for (const auto& [key, value] : values_) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t Config::number(std::string_view name, int64_t otherwise) const {
  const Value* value = find(name);
  const int64_t* number = value ? std::get_if<int64_t>(value) : nullptr;
  return number ? *number : otherwise;
}

std::string to_string(const Config& config) {
  std::string text;
  for (const auto& [name, value] : config.values())
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, to_string(value));
  return text.empty() ? "(no parameters)" : text;
}

nlohmann::json to_json(const Config& config) {
  nlohmann::json pairs = nlohmann::json::array();
  for (const auto& [name, value] : config.values()) {
    const int64_t* number = std::get_if<int64_t>(&value);
    pairs.push_back({name, number ? nlohmann::json(*number) : nlohmann::json(std::get<std::string>(value))});
  }
  return pairs;
}

Result<Config> config_from_json(const nlohmann::json& json) {
  std::vector<std::pair<std::string, Value>> values;
  const auto add = [&](const std::string& name, const nlohmann::json& entry) {
    const std::optional<Value> value = value_from_json(entry);
    if (value) values.emplace_back(name, *value);
    return value.has_value();
  };
  const auto refuse = [&] {
    return fail(DiagnosticCode::E1650, fmt::format("'{}' is not a configuration", json.dump().substr(0, 120)),
                R"(write {"block_M": 128, "block_N": 256})");
  };
  if (json.is_object()) {
    for (const auto& [name, entry] : json.items()) {
      if (!add(name, entry)) return refuse();
    }
    return Config(std::move(values));
  }
  if (!json.is_array()) return refuse();
  for (const nlohmann::json& pair : json) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !add(pair[0].get<std::string>(), pair[1]))
      return refuse();
  }
  return Config(std::move(values));
}

}  // namespace tilewright::tune
