// Scalar arithmetic as the language defines it, independent of any machine: integers wrap at the width of their type,
// floats round to nearest even. Values travel as int64_t (bool 0/1, unsigned types zero-extended, u64 as its bits) and
// double (f32 and storage floats are exactly representable).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/dtype.h"
#include "base/narrow_float.h"
#include "ir/index.h"

namespace tilewright::interp {

/// The representative of `v` modulo 2^bits(dtype); bool is v != 0.
inline int64_t wrap(DType dtype, int64_t v) {
  switch (dtype) {
    case DType::Bool: return v != 0;
    case DType::I8: return static_cast<int8_t>(v);
    case DType::I16: return static_cast<int16_t>(v);
    case DType::I32: return static_cast<int32_t>(v);
    case DType::U8: return static_cast<uint8_t>(v);
    case DType::U16: return static_cast<uint16_t>(v);
    case DType::U32: return static_cast<uint32_t>(v);
    case DType::I64:
    case DType::U64:
    case DType::F16:
    case DType::BF16:
    case DType::F32:
    case DType::F64:
    case DType::E4M3:
    case DType::E5M2: return v;
  }
  return v;
}

/// `v` rounded once, to nearest even, to a float dtype.
inline double round_to(DType dtype, double v) {
  switch (dtype) {
    case DType::F64: return v;
    case DType::F32: return static_cast<float>(v);
    case DType::F16: return f16_to_float(f16_from(v));
    case DType::BF16: return bf16_to_float(bf16_from(v));
    case DType::E4M3: return e4m3_to_float(e4m3_from(v));
    case DType::E5M2: return e5m2_to_float(e5m2_from(v));
    default: return v;
  }
}

/// Lowest and highest value of an integer dtype (u64's highest reads as -1).
inline int64_t lowest_integer(DType dtype) {
  return is_signed_int(dtype) ? std::numeric_limits<int64_t>::min() >> (64 - bits(dtype)) : 0;
}
inline int64_t highest_integer(DType dtype) {
  if (dtype == DType::Bool) return 1;
  if (is_signed_int(dtype)) return std::numeric_limits<int64_t>::max() >> (64 - bits(dtype));
  return static_cast<int64_t>(~uint64_t{0} >> (64 - bits(dtype)));
}

/// Float to integer: truncates, saturates, NaN gives 0; to bool is != 0.
inline int64_t integer_from(DType dtype, double v) {
  if (dtype == DType::Bool) return v != 0;
  if (std::isnan(v)) return 0;
  const double t = std::trunc(v);
  const double top = std::ldexp(1.0, is_signed_int(dtype) ? bits(dtype) - 1 : bits(dtype));  // highest + 1
  const double bottom = is_signed_int(dtype) ? -top : 0.0;
  if (t >= top) return highest_integer(dtype);
  if (t <= bottom) return lowest_integer(dtype);
  return dtype == DType::U64 ? static_cast<int64_t>(static_cast<uint64_t>(t)) : static_cast<int64_t>(t);
}

/// Integer of type `from` to a float of type `to`, rounded once.
inline double real_from(DType from, int64_t v, DType to) {
  if (to == DType::F64)
    return from == DType::U64 ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
  if (to == DType::F32)
    return from == DType::U64 ? static_cast<float>(static_cast<uint64_t>(v)) : static_cast<float>(v);
  // Round to odd on the way to double, so that the second rounding sees the whole value.
  const bool negative = from != DType::U64 && v < 0;
  uint64_t magnitude = negative ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  if (const int extra = 64 - std::countl_zero(magnitude | 1) - 53; extra > 0) {
    const uint64_t low = (uint64_t{1} << extra) - 1;
    if (magnitude & low) magnitude = (magnitude & ~low) | (uint64_t{1} << extra);
  }
  const double d = static_cast<double>(magnitude);
  return round_to(to, negative ? -d : d);
}

inline bool integer_less(DType dtype, int64_t x, int64_t y) {
  return dtype == DType::U64 ? static_cast<uint64_t>(x) < static_cast<uint64_t>(y) : x < y;
}

inline int64_t integer_floor_div(DType dtype, int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (dtype == DType::U64) return static_cast<int64_t>(static_cast<uint64_t>(x) / static_cast<uint64_t>(y));
  return wrap(dtype, ir::floor_div(x, y));
}
inline int64_t integer_floor_mod(DType dtype, int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (dtype == DType::U64) return static_cast<int64_t>(static_cast<uint64_t>(x) % static_cast<uint64_t>(y));
  return wrap(dtype, ir::floor_mod(x, y));
}
inline int64_t integer_shift_left(DType dtype, int64_t x, int64_t count) {
  const int n = static_cast<int>(static_cast<uint64_t>(count) % static_cast<uint64_t>(bits(dtype)));
  return wrap(dtype, static_cast<int64_t>(static_cast<uint64_t>(x) << n));
}
/// Arithmetic for signed, logical for unsigned types.
inline int64_t integer_shift_right(DType dtype, int64_t x, int64_t count) {
  const int n = static_cast<int>(static_cast<uint64_t>(count) % static_cast<uint64_t>(bits(dtype)));
  return dtype == DType::U64 ? static_cast<int64_t>(static_cast<uint64_t>(x) >> n) : x >> n;
}

/// The bits of a value of `dtype`, and back.
uint64_t bits_of(DType dtype, double real, int64_t integer);
void value_of_bits(DType dtype, uint64_t bits, double& real, int64_t& integer);

}  // namespace tilewright::interp
