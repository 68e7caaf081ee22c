#include "runtime/cuda/launch_values.h"

#include <algorithm>

namespace tilewright::cuda {
namespace {

struct DriverType {
  TensorMapType type;
  int bytes;
};
/// By CUtensorMapDataType.
constexpr DriverType kTypes[] = {{TensorMapType::U8, 1},  {TensorMapType::U16, 2}, {TensorMapType::U16, 4},
                                 {TensorMapType::I32, 4}, {TensorMapType::I32, 8}, {TensorMapType::I32, 8},
                                 {TensorMapType::F16, 2}, {TensorMapType::F32, 4}, {TensorMapType::F64, 8},
                                 {TensorMapType::BF16, 2}};
/// What the hardware takes along x; y and z take 65535.
constexpr int64_t kLargestX = INT32_MAX, kLargestYZ = 65535;

}  // namespace

std::array<int64_t, 3> grid_of(const runtime::Launch& launch, std::span<const int64_t> slots) {
  std::array<int64_t, 3> grid = {1, 1, 1};
  for (size_t i = 0; i < launch.grid.size(); ++i) {
    const int64_t n = evaluate(launch.grid[i], slots);
    grid[i] = n > (i == 0 ? kLargestX : kLargestYZ) ? -1 : std::max<int64_t>(n, 0);
  }
  return grid;
}

TensorMap tensor_map_of(const runtime::TensorMap& spec, std::span<void* const> pointers,
                        std::span<const int64_t> slots) {
  TensorMap map;
  // An empty tensor may have any address, or none; nothing is read there, but the copy engine wants a legal one.
  map.address = std::max<uint64_t>((reinterpret_cast<uint64_t>(pointers[spec.pointer]) + 15) & ~uint64_t{15}, 4096);
  map.type = kTypes[spec.data_type].type;
  map.element_bytes = kTypes[spec.data_type].bytes;
  map.rank = static_cast<int>(spec.extents.size());
  map.stride[0] = static_cast<uint64_t>(map.element_bytes);
  for (size_t i = 0; i < spec.extents.size(); ++i) {
    map.extent[i] = static_cast<uint64_t>(evaluate(spec.extents[i], slots));
    map.box[i] = spec.box[i];
    if (i > 0) map.stride[i] = static_cast<uint64_t>(evaluate(spec.stride_bytes[i - 1], slots));
  }
  map.swizzle = static_cast<Swizzle>(spec.swizzle);
  return map;
}

}  // namespace tilewright::cuda
