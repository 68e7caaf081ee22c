// One point of a tuning space: parameter names with values, in declared order. A pure value.
#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::tune {

/// A parameter's value: a number, or a word (a dtype, a named choice). Flags are 0 and 1.
using Value = std::variant<int64_t, std::string>;

std::string to_string(const Value& value);

class Config {
 public:
  Config() = default;
  explicit Config(std::vector<std::pair<std::string, Value>> values) : values_(std::move(values)) {}

  const std::vector<std::pair<std::string, Value>>& values() const { return values_; }
  const Value* find(std::string_view name) const;  ///< null when there is no such parameter
  int64_t number(std::string_view name, int64_t otherwise) const;

  friend bool operator==(const Config&, const Config&) = default;

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

/// "block_M=128 block_N=256"
std::string to_string(const Config& config);

/// A JSON list of [name, value] pairs: JSON objects forget order, and order is part of a configuration.
nlohmann::json to_json(const Config& config);
/// Accepts the list form and a plain object.
Result<Config> config_from_json(const nlohmann::json& json);

}  // namespace tilewright::tune
