// The mistakes the fuzzer can plant (plants.def), and the check of a name a person typed.
#pragma once

#include <span>
#include <string_view>

#include "base/plant.h"
#include "fuzz/generate.h"

namespace tilewright::fuzz {

struct PlantInfo {
  std::string_view name;  ///< "forward_copies:1"
  std::string_view text;
  bool needs_native_code;
  bool is_gpu;  ///< of the GPU planner: thread programs show it
  Focus focus;  ///< what the cases of a campaign that must find it hold
};
std::span<const PlantInfo> plants();

/// What cases that are to find `plant` should hold.
Focus focus_of(const Plant& plant);

/// E1210 with the nearest name, or all of them, when `text` is none.
Result<Plant> find_plant(std::string_view text);

}  // namespace tilewright::fuzz
