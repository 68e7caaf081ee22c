#include "tune/runner.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace tilewright::tune {
namespace {

struct Field {
  const char* name;
  std::string Identity::*member;
};
constexpr std::array<Field, 7> kFields = {{{"source", &Identity::source},
                                           {"workload", &Identity::workload},
                                           {"toolchain", &Identity::toolchain},
                                           {"arch", &Identity::arch},
                                           {"device", &Identity::device},
                                           {"driver", &Identity::driver},
                                           {"harness", &Identity::harness}}};

}  // namespace

nlohmann::json to_json(const Identity& identity) {
  nlohmann::json json;
  for (const Field& field : kFields) json[field.name] = identity.*field.member;
  return json;
}

Result<Identity> identity_from_json(const nlohmann::json& json) {
  Identity identity;
  for (const Field& field : kFields) {
    if (!json.is_object() || !json.contains(field.name) || !json[field.name].is_string()) {
      return fail(DiagnosticCode::E1652, fmt::format("the identity has no text '{}'", field.name));
    }
    identity.*field.member = json[field.name].get<std::string>();
  }
  return identity;
}

std::vector<std::string> differences(const Identity& recorded, const Identity& here) {
  std::vector<std::string> found;
  for (const Field& field : kFields) {
    if (recorded.*field.member == here.*field.member) continue;
    found.push_back(
        fmt::format("{}: recorded '{}', here '{}'", field.name, recorded.*field.member, here.*field.member));
  }
  return found;
}

}  // namespace tilewright::tune
