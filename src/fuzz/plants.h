// The mistakes the fuzzer can plant (plants.def), and the check of a name a person typed.
#pragma once

#include <span>
#include <string_view>

#include "base/plant.h"

namespace tilewright::fuzz {

struct PlantInfo {
  std::string_view name;  ///< "forward_copies:1"
  std::string_view text;
  bool needs_native_code;
  bool is_gpu;  ///< of the GPU planner: thread programs show it
};
std::span<const PlantInfo> plants();

/// E1210 with the nearest name, or all of them, when `text` is none.
Result<Plant> find_plant(std::string_view text);

}  // namespace tilewright::fuzz
