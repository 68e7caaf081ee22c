#include "base/narrow_float.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tilewright {
namespace {

template <typename T>
T saturate_to_integer(double value) {
  if (std::isnan(value)) return 0;
  // 2^bits is exact in double where max() is not, so compare against it.
  const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value >= above) return std::numeric_limits<T>::max();
  if (value < static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  return static_cast<T>(value);
}

template <typename T, typename Real>
void load_plain(const void* source, Real* out, size_t count) {
  const auto* in = static_cast<const T*>(source);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<Real>(in[i]);
}

template <typename Code, typename Real, typename Decode>
void load_codes(const void* source, Real* out, size_t count, Decode decode) {
  const auto* in = static_cast<const Code*>(source);
  for (size_t i = 0; i < count; ++i) out[i] = decode(in[i]);
}

template <typename T, typename Real>
void store_integers(const Real* source, void* out, size_t count) {
  auto* to = static_cast<T*>(out);
  for (size_t i = 0; i < count; ++i) to[i] = saturate_to_integer<T>(source[i]);
}

template <typename Code, typename Real, typename Encode>
void store_codes(const Real* source, void* out, size_t count, Encode encode) {
  auto* to = static_cast<Code*>(out);
  for (size_t i = 0; i < count; ++i) to[i] = encode(source[i]);
}

template <typename Real>
void load(DType dtype, const void* source, Real* out, size_t count) {
  switch (dtype) {
    case DType::Bool: return load_codes<uint8_t>(source, out, count, [](uint8_t v) { return Real(v != 0); });
    case DType::I8: return load_plain<int8_t>(source, out, count);
    case DType::I16: return load_plain<int16_t>(source, out, count);
    case DType::I32: return load_plain<int32_t>(source, out, count);
    case DType::I64: return load_plain<int64_t>(source, out, count);
    case DType::U8: return load_plain<uint8_t>(source, out, count);
    case DType::U16: return load_plain<uint16_t>(source, out, count);
    case DType::U32: return load_plain<uint32_t>(source, out, count);
    case DType::U64: return load_plain<uint64_t>(source, out, count);
    case DType::F16: return load_codes<uint16_t>(source, out, count, f16_to_float);
    case DType::BF16: return load_codes<uint16_t>(source, out, count, bf16_to_float);
    case DType::F32: return load_plain<float>(source, out, count);
    case DType::F64: return load_plain<double>(source, out, count);
    case DType::E4M3: return load_codes<uint8_t>(source, out, count, e4m3_to_float);
    case DType::E5M2: return load_codes<uint8_t>(source, out, count, e5m2_to_float);
  }
}

template <typename Real>
void store(DType dtype, const Real* source, void* out, size_t count) {
  switch (dtype) {
    case DType::Bool: return store_codes<uint8_t>(source, out, count, [](Real v) { return uint8_t(v != 0); });
    case DType::I8: return store_integers<int8_t>(source, out, count);
    case DType::I16: return store_integers<int16_t>(source, out, count);
    case DType::I32: return store_integers<int32_t>(source, out, count);
    case DType::I64: return store_integers<int64_t>(source, out, count);
    case DType::U8: return store_integers<uint8_t>(source, out, count);
    case DType::U16: return store_integers<uint16_t>(source, out, count);
    case DType::U32: return store_integers<uint32_t>(source, out, count);
    case DType::U64: return store_integers<uint64_t>(source, out, count);
    case DType::F16: return store_codes<uint16_t>(source, out, count, [](Real v) { return f16_from(v); });
    case DType::BF16: return store_codes<uint16_t>(source, out, count, [](Real v) { return bf16_from(v); });
    case DType::F32: return store_codes<float>(source, out, count, [](Real v) { return static_cast<float>(v); });
    case DType::F64: return store_codes<double>(source, out, count, [](Real v) { return static_cast<double>(v); });
    case DType::E4M3: return store_codes<uint8_t>(source, out, count, [](Real v) { return e4m3_from(v); });
    case DType::E5M2: return store_codes<uint8_t>(source, out, count, [](Real v) { return e5m2_from(v); });
  }
}

}  // namespace

const NarrowFormat* narrow_format(DType dtype) {
  switch (dtype) {
    case DType::F16: return &kF16;
    case DType::BF16: return &kBf16;
    case DType::E4M3: return &kE4m3;
    case DType::E5M2: return &kE5m2;
    default: return nullptr;
  }
}

void load_doubles(DType dtype, const void* source, double* out, size_t count) { load(dtype, source, out, count); }
void load_floats(DType dtype, const void* source, float* out, size_t count) { load(dtype, source, out, count); }
void store_doubles(DType dtype, const double* source, void* out, size_t count) { store(dtype, source, out, count); }
void store_floats(DType dtype, const float* source, void* out, size_t count) { store(dtype, source, out, count); }

double unit_roundoff(DType dtype) {
  if (const NarrowFormat* format = narrow_format(dtype)) return std::ldexp(1.0, -format->mantissa_bits - 1);
  if (dtype == DType::F32) return 0x1p-24;
  return dtype == DType::F64 ? 0x1p-53 : 0.0;
}

double largest_finite(DType dtype) {
  if (const NarrowFormat* format = narrow_format(dtype)) return decode_narrow(format->max_finite, *format);
  return dtype == DType::F64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
}

}  // namespace tilewright
