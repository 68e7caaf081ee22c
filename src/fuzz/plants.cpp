#include "fuzz/plants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/closest.h"

namespace tilewright::fuzz {
namespace {

constexpr PlantInfo kPlants[] = {
#define TW_PLANT(name, text) {name, text, false, false, Focus::Any},
#define TW_CODE_PLANT(name, text) {name, text, true, false, Focus::Any},
#define TW_TEST_PLANT(name, text)
#define TW_GPU_PLANT(name, focus, text) {name, text, false, true, Focus::focus},
#include "fuzz/plants.def"
#undef TW_PLANT
#undef TW_CODE_PLANT
#undef TW_TEST_PLANT
#undef TW_GPU_PLANT
};

}  // namespace

std::span<const PlantInfo> plants() { return kPlants; }

Focus focus_of(const Plant& plant) {
  const auto* row = std::ranges::find(kPlants, to_string(plant), &PlantInfo::name);
  return row == std::end(kPlants) ? Focus::Any : row->focus;
}

Result<Plant> find_plant(std::string_view text) {
  auto plant = parse_plant(text);
  if (!plant || std::ranges::find(kPlants, text, &PlantInfo::name) != std::end(kPlants)) return plant;
  std::vector<std::string> names;
  for (const PlantInfo& p : kPlants) names.emplace_back(p.name);
  const std::string near = closest(text, names);
  return fail(
      DiagnosticCode::E1210, fmt::format("'{}' does not name a planted mistake", text),
      near.empty() ? fmt::format("there are: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
}

}  // namespace tilewright::fuzz
