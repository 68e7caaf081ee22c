// Element types as the run-time library needs them: spelling, width, and a scalar's bit pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tilewright/tilewright.h"

namespace tilewright::runtime {

inline constexpr int kDTypeCount = 15;

struct Element {
  std::string_view name;
  int bits;
  uint8_t dlpack_code;
};

inline constexpr Element kElements[] = {
#define TW_ELEMENT(enumerator, spelling, bits, dlpack) {spelling, bits, dlpack},
#include "runtime/element.def"
#undef TW_ELEMENT
};

bool is_dtype(int32_t value);
inline const Element& element(tw_dtype dtype) { return kElements[static_cast<size_t>(dtype)]; }
inline std::string_view name(tw_dtype dtype) { return element(dtype).name; }
inline int element_bytes(tw_dtype dtype) { return element(dtype).bits / 8; }
bool is_float(tw_dtype dtype);
bool is_signed(tw_dtype dtype);

/// `value` rounded once to `dtype` (a float type other than e4m3, e5m2), as a bit pattern in the low bits.
int64_t float_bits(double value, tw_dtype dtype);

/// `value` wrapped to the integer type `dtype` and extended to 64 bits by its sign; bool gives 0 or 1.
int64_t integer_bits(int64_t value, tw_dtype dtype);

}  // namespace tilewright::runtime
