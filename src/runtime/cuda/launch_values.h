// What one launch of a recipe passes to a kernel, evaluated for bound slots and pointers: grid, block, tensor maps.
// Pure values; shared by the device and by the interpreter of thread programs, so that both run the same launch.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/tensor_map.h"
#include "runtime/recipe.h"

namespace tilewright::cuda {

/// Blocks along x, y, z; an extent below 1 is 0: nothing runs. E1411-worthy extents (over 2^31 - 1) come back as -1.
std::array<int64_t, 3> grid_of(const runtime::Launch& launch, std::span<const int64_t> slots);

TensorMap tensor_map_of(const runtime::TensorMap& spec, std::span<void* const> pointers,
                        std::span<const int64_t> slots);

}  // namespace tilewright::cuda
