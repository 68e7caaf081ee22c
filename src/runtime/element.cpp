#include "runtime/element.h"

#include <bit>
#include <cmath>

namespace tilewright::runtime {
namespace {

static_assert(std::size(kElements) == kDTypeCount);

#define TW_ELEMENT(enumerator, spelling, bits, dlpack) \
  static_assert(kElements[enumerator].name == std::string_view(spelling));
#include "runtime/element.def"
#undef TW_ELEMENT

/// `value` rounded to odd into f32: a second rounding to a type of at most 22 significant bits is then exact-once.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(nearest) || static_cast<double>(nearest) == value) return nearest;
  const bool nearest_is_larger = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (nearest_is_larger) --bits;  // truncate toward zero
  return std::bit_cast<float>(bits | 1u);
}

uint16_t bf16_bits(double value) {
  const uint32_t bits = std::bit_cast<uint32_t>(round_to_odd(value));
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

uint16_t f16_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000u : 0u;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00u);
  // Scale so that one unit is one step of f16 at this magnitude, round to even, and read the bits as an integer:
  // a carry out of the fraction moves into the exponent by itself.
  int exponent = magnitude > 0 ? std::ilogb(magnitude) : -15;
  if (exponent < -14) exponent = -14;
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return static_cast<uint16_t>(sign | (steps + (static_cast<uint32_t>(exponent + 14) << 10)));
}

}  // namespace

bool is_dtype(int32_t value) { return value >= 0 && value < kDTypeCount; }
bool is_float(tw_dtype dtype) { return dtype >= TW_F16; }
bool is_signed(tw_dtype dtype) { return dtype >= TW_I8 && dtype <= TW_I64; }

int64_t float_bits(double value, tw_dtype dtype) {
  switch (dtype) {
    case TW_F16: return f16_bits(value);
    case TW_BF16: return bf16_bits(value);
    case TW_F32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    default: return std::bit_cast<int64_t>(value);
  }
}

int64_t integer_bits(int64_t value, tw_dtype dtype) {
  if (dtype == TW_BOOL) return value != 0;
  const int unused = 64 - element(dtype).bits;
  const uint64_t shifted = static_cast<uint64_t>(value) << unused;
  return is_signed(dtype) ? static_cast<int64_t>(shifted) >> unused : static_cast<int64_t>(shifted >> unused);
}

}  // namespace tilewright::runtime
