// Content digests: XXH3-128 for keys, SHA-256 for what people compare by hand (contracts, records).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

/// 128-bit content key; equal content gives an equal key on every machine.
struct Key128 {
  uint64_t high = 0;
  uint64_t low = 0;
  friend bool operator==(const Key128&, const Key128&) = default;
  friend auto operator<=>(const Key128&, const Key128&) = default;
};

Key128 hash128(std::string_view bytes);
std::string to_hex(const Key128& key);  ///< 32 lower-case digits

/// SHA-256 (FIPS 180-4) as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace tilewright
