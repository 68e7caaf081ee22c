// A tiled view of a tensor as the Hopper copy engine sees it: what cuTensorMapEncodeTiled takes, as plain values.
// Extents and strides are run-time values; box, swizzle and element size belong to the compiled kernel.
#pragma once

#include <array>
#include <cstdint>

namespace tilewright {

enum class Swizzle : uint8_t { None, B32, B64, B128 };

/// Bytes of the inner box dimension a swizzle pattern spans (16 for None: no pattern).
constexpr int swizzle_bytes(Swizzle swizzle) { return swizzle == Swizzle::None ? 16 : 16 << static_cast<int>(swizzle); }

/// Where the byte at `offset` of an unswizzled tile (base aligned to 1024) really lies: 16-byte chunk index bits are
/// XORed with the index of the 128-byte line (PTX ISA, "Swizzling modes").
constexpr uint32_t swizzled(Swizzle swizzle, uint32_t offset) {
  const uint32_t mask = (1u << static_cast<int>(swizzle)) - 1;
  return offset ^ (((offset >> 7) & mask) << 4);
}

enum class TensorMapType : uint8_t { U8, U16, F16, BF16, I32, F32, F64 };

struct TensorMap {
  static constexpr int kMaxRank = 5;
  uint64_t address = 0;
  TensorMapType type = TensorMapType::U16;
  int element_bytes = 2;
  int rank = 0;
  std::array<uint64_t, kMaxRank> extent{};  ///< elements, innermost first
  std::array<uint64_t, kMaxRank> stride{};  ///< bytes; stride[0] is element_bytes
  std::array<uint32_t, kMaxRank> box{};     ///< elements, innermost first, each 1..256
  Swizzle swizzle = Swizzle::None;
};

}  // namespace tilewright
