// Exact conversions of the storage floats f16, bf16, e4m3 and e5m2: decoding is exact, encoding rounds once to nearest
// even. The formats are one table (NarrowFormat); float and double sources share one algorithm, so a double is never
// rounded twice. NaN stays NaN (sign and upper payload bits kept, made quiet; e4m3 has a single NaN payload); signed
// zeros and subnormals are kept, never flushed. Overflow: f16 and bf16 give infinity; e4m3 and e5m2 saturate to the
// largest finite value, as `cvt.rn.satfinite` and ONNX's Cast do, also for infinite inputs; Overflow::Ieee gives
// PyTorch's rule (e4m3 NaN, e5m2 Inf).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/dtype.h"

namespace tilewright {

/// Sign, `exponent_bits`, `mantissa_bits`; codes above `max_finite` (without sign) are `infinity` if there is one, and
/// NaN.
struct NarrowFormat {
  int exponent_bits;
  int mantissa_bits;
  uint16_t max_finite;
  uint16_t infinity;  ///< 0 when the format has none
  bool saturates;     ///< default overflow rule

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int sign_shift() const { return exponent_bits + mantissa_bits; }
  constexpr uint16_t magnitude_mask() const { return static_cast<uint16_t>((1u << sign_shift()) - 1); }
};

inline constexpr NarrowFormat kF16{5, 10, 0x7BFF, 0x7C00, false};
inline constexpr NarrowFormat kBf16{8, 7, 0x7F7F, 0x7F80, false};
inline constexpr NarrowFormat kE4m3{4, 3, 0x7E, 0, true};
inline constexpr NarrowFormat kE5m2{5, 2, 0x7B, 0x7C, true};

enum class Overflow : uint8_t { Saturate, Ieee };

namespace detail {

template <typename T>
struct FloatBits;
template <>
struct FloatBits<float> {
  using Word = uint32_t;
  static constexpr int kMantissa = 23, kBias = 127, kExponentMask = 0xFF;
};
template <>
struct FloatBits<double> {
  using Word = uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023, kExponentMask = 0x7FF;
};

template <typename Word>
constexpr Word shift_right_to_nearest_even(Word significand, int shift) {
  const Word quotient = significand >> shift;
  const Word rest = significand & ((Word{1} << shift) - 1);
  const Word half = Word{1} << (shift - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1)) ? 1 : 0);
}

}  // namespace detail

/// The code of `value` (a float or double) in `format`.
template <typename Source>
constexpr uint16_t encode_narrow(Source value, const NarrowFormat& format, Overflow overflow) {
  using Bits = detail::FloatBits<Source>;
  using Word = typename Bits::Word;
  const Word bits = std::bit_cast<Word>(value);
  const int exponent_field = static_cast<int>(bits >> Bits::kMantissa) & Bits::kExponentMask;
  const Word mantissa = bits & ((Word{1} << Bits::kMantissa) - 1);
  const auto sign = static_cast<uint16_t>((bits >> (sizeof(Word) * 8 - 1)) << format.sign_shift());
  const int drop = Bits::kMantissa - format.mantissa_bits;

  if (exponent_field == Bits::kExponentMask && mantissa != 0) {
    if (!format.infinity) return sign | format.magnitude_mask();
    const auto quiet = static_cast<uint16_t>(1u << (format.mantissa_bits - 1));
    return sign | format.infinity | quiet | static_cast<uint16_t>(mantissa >> drop);
  }
  uint32_t code = 0xFFFF;  // infinite: above every finite code
  if (exponent_field != Bits::kExponentMask) {
    // A subnormal source has exponent 1 - bias and no implicit bit; only bf16 from float can hold any of it.
    const int exponent = (exponent_field ? exponent_field : 1) - Bits::kBias;
    const Word significand = mantissa | (exponent_field ? Word{1} << Bits::kMantissa : Word{0});
    const int lowest = 1 - format.bias();
    const int below = exponent < lowest ? lowest - exponent : 0;
    if (drop + below > Bits::kMantissa + 1) {
      code = 0;
    } else {
      const Word rounded = detail::shift_right_to_nearest_even(significand, drop + below);
      // The implicit bit of `rounded` carries into the exponent field, and so does a rounding overflow.
      const int base_exponent = below ? 0 : exponent - lowest;
      code = (static_cast<uint32_t>(base_exponent) << format.mantissa_bits) + static_cast<uint32_t>(rounded);
    }
  }
  if (code > format.max_finite) {
    if (overflow == Overflow::Saturate) return sign | format.max_finite;
    return sign | (format.infinity ? format.infinity : format.magnitude_mask());
  }
  return sign | static_cast<uint16_t>(code);
}

/// The value of `code` in `format`, exact.
constexpr float decode_narrow(uint16_t code, const NarrowFormat& format) {
  const uint32_t sign = static_cast<uint32_t>(code >> format.sign_shift()) << 31;
  const uint32_t magnitude = code & format.magnitude_mask();
  const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  const uint32_t exponent = magnitude >> format.mantissa_bits;
  const int drop = 23 - format.mantissa_bits;
  if (magnitude > format.max_finite) {
    return std::bit_cast<float>(sign | 0x7F800000u | (magnitude == format.infinity ? 0 : mantissa << drop));
  }
  if (exponent == 0 && format.exponent_bits < 8) {  // subnormal: an integer times a power of two, exact in float
    const float unit = std::bit_cast<float>(static_cast<uint32_t>(128 - format.bias() - format.mantissa_bits) << 23);
    const float value = static_cast<float>(mantissa) * unit;
    return sign ? -value : value;
  }
  const uint32_t field = format.exponent_bits == 8 ? exponent : exponent + 127 - static_cast<uint32_t>(format.bias());
  return std::bit_cast<float>(sign | field << 23 | mantissa << drop);
}

inline constexpr uint16_t f16_from(float value) { return encode_narrow(value, kF16, Overflow::Ieee); }
inline constexpr uint16_t f16_from(double value) { return encode_narrow(value, kF16, Overflow::Ieee); }
inline constexpr uint16_t bf16_from(double value) { return encode_narrow(value, kBf16, Overflow::Ieee); }
inline constexpr uint16_t bf16_from(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}
template <typename Source>
constexpr uint8_t e4m3_from(Source value, Overflow overflow = Overflow::Saturate) {
  static_assert(std::is_floating_point_v<Source>);
  return static_cast<uint8_t>(encode_narrow(value, kE4m3, overflow));
}
template <typename Source>
constexpr uint8_t e5m2_from(Source value, Overflow overflow = Overflow::Saturate) {
  static_assert(std::is_floating_point_v<Source>);
  return static_cast<uint8_t>(encode_narrow(value, kE5m2, overflow));
}

inline constexpr float f16_to_float(uint16_t code) { return decode_narrow(code, kF16); }
inline constexpr float bf16_to_float(uint16_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code) << 16); }
inline constexpr float e4m3_to_float(uint8_t code) { return decode_narrow(code, kE4m3); }
inline constexpr float e5m2_to_float(uint8_t code) { return decode_narrow(code, kE5m2); }

/// The table row of a storage float; null for every other dtype.
const NarrowFormat* narrow_format(DType dtype);

/// Arrays, any dtype but the 64-bit integers beyond 2^53 exactly. From floats to integers the value saturates and NaN
/// gives 0 (docs/semantics.md); Bool is 0 or 1.
void load_doubles(DType dtype, const void* source, double* out, size_t count);
void store_doubles(DType dtype, const double* source, void* out, size_t count);
void load_floats(DType dtype, const void* source, float* out, size_t count);
void store_floats(DType dtype, const float* source, void* out, size_t count);

/// Unit roundoff u = half the distance from 1 to the next value: 2^-24 for f32, 2^-11 for f16, 2^-8 for bf16; 0 for
/// integers.
double unit_roundoff(DType dtype);
/// Largest finite value of a float dtype.
double largest_finite(DType dtype);

}  // namespace tilewright
