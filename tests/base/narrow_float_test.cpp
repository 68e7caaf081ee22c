#include "base/narrow_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tilewright {
namespace {

struct Case {
  const char* name;
  NarrowFormat format;
};
const Case kCases[] = {{"f16", kF16}, {"bf16", kBf16}, {"e4m3", kE4m3}, {"e5m2", kE5m2}};

/// The definition: fields times powers of two, in double.
double value_of(uint16_t code, const NarrowFormat& f) {
  const int magnitude = code & f.magnitude_mask();
  const int exponent = magnitude >> f.mantissa_bits;
  const int mantissa = magnitude & ((1 << f.mantissa_bits) - 1);
  const double sign = code >> f.sign_shift() ? -1 : 1;
  if (magnitude > f.max_finite) {
    return f.infinity && magnitude == f.infinity ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  }
  const double fraction = std::ldexp(mantissa, -f.mantissa_bits);
  return sign * (exponent ? std::ldexp(1 + fraction, exponent - f.bias()) : std::ldexp(fraction, 1 - f.bias()));
}

TEST(NarrowFloat, EveryCodeDecodesByTheDefinitionAndEncodesBack) {
  for (const Case& c : kCases) {
    const uint32_t codes = 1u << (c.format.sign_shift() + 1);
    for (uint32_t code = 0; code < codes; ++code) {
      const auto narrow = static_cast<uint16_t>(code);
      const float value = decode_narrow(narrow, c.format);
      const double expected = value_of(narrow, c.format);
      ASSERT_EQ(std::isnan(value), std::isnan(expected)) << c.name << " code " << code;
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode_narrow(encode_narrow(value, c.format, Overflow::Ieee), c.format)));
        continue;
      }
      ASSERT_EQ(static_cast<double>(value), expected) << c.name << " code " << code;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << c.name << " code " << code;
      ASSERT_EQ(encode_narrow(value, c.format, Overflow::Ieee), narrow) << c.name;
      ASSERT_EQ(encode_narrow(static_cast<double>(value), c.format, Overflow::Ieee), narrow) << c.name;
    }
  }
}

/// Between each pair of neighbours: the midpoint goes to the even code, one ulp (of double, of float) beside it to the
/// nearer.
TEST(NarrowFloat, RoundsToNearestEvenAtEveryMidpoint) {
  for (const Case& c : kCases) {
    for (uint16_t code = 0; code < c.format.max_finite; ++code) {
      const double low = value_of(code, c.format), high = value_of(code + 1, c.format);
      const double middle = (low + high) / 2;
      const auto even = static_cast<uint16_t>(code + (code & 1));
      const auto sign = static_cast<uint16_t>(1u << c.format.sign_shift());
      ASSERT_EQ(encode_narrow(middle, c.format, Overflow::Ieee), even) << c.name << " above code " << code;
      ASSERT_EQ(encode_narrow(-middle, c.format, Overflow::Ieee), even | sign) << c.name;
      ASSERT_EQ(encode_narrow(std::nextafter(middle, 0.0), c.format, Overflow::Ieee), code) << c.name;
      ASSERT_EQ(
          encode_narrow(std::nextafter(middle, std::numeric_limits<double>::infinity()), c.format, Overflow::Ieee),
          code + 1)
          << c.name;
      const auto middle_f = static_cast<float>(middle);
      ASSERT_EQ(static_cast<double>(middle_f), middle);
      ASSERT_EQ(encode_narrow(middle_f, c.format, Overflow::Ieee), even) << c.name;
      ASSERT_EQ(encode_narrow(std::nextafter(middle_f, 0.0f), c.format, Overflow::Ieee), code) << c.name;
      ASSERT_EQ(
          encode_narrow(std::nextafter(middle_f, std::numeric_limits<float>::infinity()), c.format, Overflow::Ieee),
          code + 1)
          << c.name;
    }
  }
}

TEST(NarrowFloat, FastBf16IsTheGenericOneForRandomBitPatterns) {
  const uint32_t seed = 20261130;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 2'000'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    ASSERT_EQ(bf16_from(value), encode_narrow(value, kBf16, Overflow::Ieee)) << "seed " << seed << " value " << value;
  }
}

TEST(NarrowFloat, NoDoubleRoundingFromDouble) {
  // 1 + 2^-11 + 2^-40 lies above the midpoint of f16; through float it would become the midpoint and round down.
  EXPECT_EQ(f16_from(1.0 + 0x1p-11 + 0x1p-40), 0x3C01);
  EXPECT_EQ(f16_from(static_cast<float>(1.0 + 0x1p-11 + 0x1p-40)), 0x3C00);
}

TEST(NarrowFloat, OverflowFollowsTheDocumentedRule) {
  EXPECT_EQ(f16_from(65519.0f), 0x7BFF);
  EXPECT_EQ(f16_from(65520.0f), 0x7C00);
  EXPECT_EQ(f16_from(-INFINITY), 0xFC00);
  EXPECT_EQ(bf16_from(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(e4m3_to_float(e4m3_from(1e9f)), 448.0f);
  EXPECT_EQ(e4m3_to_float(e4m3_from(-INFINITY)), -448.0f);
  EXPECT_EQ(e5m2_to_float(e5m2_from(INFINITY)), 57344.0f);
  EXPECT_EQ(e4m3_to_float(e4m3_from(464.0, Overflow::Ieee)), 448.0f);
  EXPECT_EQ(e4m3_from(464.1, Overflow::Ieee), 0x7F);
  EXPECT_EQ(e5m2_from(61440.0, Overflow::Ieee), 0x7C);
  EXPECT_TRUE(std::isnan(e4m3_to_float(e4m3_from(NAN))));
  EXPECT_TRUE(std::isnan(e5m2_to_float(e5m2_from(NAN))));
  EXPECT_TRUE(std::isnan(bf16_to_float(bf16_from(std::bit_cast<float>(0x7F800001u)))));
}

TEST(NarrowFloat, ArraysRoundTripAndIntegersSaturate) {
  for (int d = 0; d <= static_cast<int>(DType::E5M2); ++d) {
    const auto dtype = static_cast<DType>(d);
    const double source[4] = {0, 1, dtype == DType::Bool ? 1.0 : 3.0, 1};
    std::vector<unsigned char> bytes_of(4 * static_cast<size_t>(bytes(dtype)));
    double back[4];
    float back_f[4];
    store_doubles(dtype, source, bytes_of.data(), 4);
    load_doubles(dtype, bytes_of.data(), back, 4);
    load_floats(dtype, bytes_of.data(), back_f, 4);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(back[i], source[i]) << name(dtype);
      EXPECT_EQ(back_f[i], source[i]) << name(dtype);
    }
  }
  const double hard[5] = {1e30, -1e30, NAN, -0.9, 9223372036854775807.0};
  int8_t i8[5];
  int64_t i64[5];
  uint8_t u8[5];
  store_doubles(DType::I8, hard, i8, 5);
  store_doubles(DType::I64, hard, i64, 5);
  store_doubles(DType::U8, hard, u8, 5);
  EXPECT_EQ(i8[0], 127);
  EXPECT_EQ(i8[1], -128);
  EXPECT_EQ(i8[2], 0);
  EXPECT_EQ(i8[3], 0);
  EXPECT_EQ(i64[4], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(u8[1], 0);
  EXPECT_EQ(u8[0], 255);
}

TEST(NarrowFloat, UnitRoundoffIsHalfAnUlpOfOne) {
  for (const Case& c : kCases) {
    const auto one = encode_narrow(1.0, c.format, Overflow::Ieee);
    const double ulp = value_of(one + 1, c.format) - 1.0;
    const auto dtype = *parse_dtype(c.name);
    EXPECT_EQ(unit_roundoff(dtype), ulp / 2) << c.name;
    EXPECT_EQ(largest_finite(dtype), value_of(c.format.max_finite, c.format));
  }
  EXPECT_EQ(unit_roundoff(DType::F32), 0x1p-24);
  EXPECT_EQ(unit_roundoff(DType::I32), 0);
}

}  // namespace
}  // namespace tilewright
