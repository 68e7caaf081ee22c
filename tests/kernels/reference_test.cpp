// The words of `reference`: values by definition, bounds that hold for programs in the declared types and not for wrong
// ones.
#include "kernels/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/seed.h"

namespace tilewright::kernels {
namespace {

lang::Reference parsed(std::string_view text) {
  auto reference = parse_reference(text);
  EXPECT_TRUE(reference) << text << ": " << (reference ? "" : reference.error().message);
  return reference.value_or(lang::Reference{});
}

DoubleTensor value(std::string_view text, const NamedTensors& arguments) {
  auto made = evaluate_reference(parsed(text), arguments);
  EXPECT_TRUE(made) << text << ": " << (made ? "" : made.error().message);
  return made.value_or(DoubleTensor{});
}

/// Values a float holds exactly.
DoubleTensor drawn(std::vector<int64_t> shape, std::mt19937_64& random) {
  DoubleTensor out = DoubleTensor::zeros(std::move(shape));
  std::normal_distribution<float> normal;
  for (double& v : out.data) v = normal(random);
  return out;
}

TEST(Reference, TextIsReadBack) {
  for (const char* text : {"mul(silu(add(matmul(X, Wg), bg)), matmul(X, Wu))", "matmul(A, B, transpose_b = true)",
                           "cast(X, f16)", "epilogue(matmul(A, B), none, residual, relu = true, gelu = false)",
                           "add(X, 1e-05)", "add(X, 64)", "attention(Q, K, V, scale, mask = causal_bottom_right)"})
    EXPECT_EQ(lang::to_string(parsed(text)), text);
  EXPECT_FALSE(parse_reference("matmul(A"));
  EXPECT_FALSE(parse_reference("A, B"));
}

TEST(Reference, ShapesJoinAtTheLastDimensionAndExtentsOfOneRepeat) {
  const NamedTensors x = {{"X", {{2, 3}, {1, 2, 3, 4, 5, 6}}}, {"r", {{3}, {10, 20, 30}}}, {"c", {{2, 1}, {100, 200}}}};
  EXPECT_EQ(value("X + r", x).data, (std::vector<double>{11, 22, 33, 14, 25, 36}));
  EXPECT_EQ(value("X + c", x).data, (std::vector<double>{101, 102, 103, 204, 205, 206}));
  EXPECT_EQ(value("r - X", x).data, (std::vector<double>{9, 18, 27, 6, 15, 24}));
  EXPECT_EQ(value("X - row_max(X, keep = true)", x).data, (std::vector<double>{-2, -1, 0, -2, -1, 0}));
  EXPECT_EQ(value("c * r", x).shape, (std::vector<int64_t>{2, 3}));
  const auto bad = evaluate_reference(parsed("X + row_sum(X)"), x);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("equal shapes, a row, a scalar or extents of 1 is needed"), std::string::npos);
}

TEST(Reference, MovingWords) {
  const NamedTensors x = {{"X", {{2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}}}, {"D", DoubleTensor::scalar(4)}};
  EXPECT_EQ(value("slice(X, 1, 3)", x).data, (std::vector<double>{1, 2, 5, 6}));
  EXPECT_EQ(value("concat(slice(X, D // 2, D), slice(X, 0, D // 2))", x).data,
            (std::vector<double>{2, 3, 0, 1, 6, 7, 4, 5}));
  EXPECT_EQ(value("transpose(X)", x).data, (std::vector<double>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(value("permute(reshape(X, 2, 2, 2), 1, 0, 2)", x).data, (std::vector<double>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(value("select(X > 3, X, 0)", x).data, (std::vector<double>{0, 0, 0, 0, 4, 5, 6, 7}));
  EXPECT_FALSE(evaluate_reference(parsed("slice(X, 2, 5)"), x));
  EXPECT_FALSE(evaluate_reference(parsed("reshape(X, 3, 3)"), x));
}

TEST(Reference, ConvolutionIsTheSumOverItsWindow) {
  std::mt19937_64 random(test::seed(1));
  const DoubleTensor x = drawn({2, 4, 7, 6}, random), w = drawn({6, 2, 3, 2}, random);
  const DoubleTensor y = value("conv(X, W, stride = 2, pad = 1, dilation = 1, groups = 2)", {{"X", x}, {"W", w}});
  ASSERT_EQ(y.shape, (std::vector<int64_t>{2, 6, 4, 4}));
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t f = 0; f < 6; ++f) {
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t j = 0; j < 4; ++j) {
          double sum = 0;
          for (int64_t c = 0; c < 2; ++c) {
            for (int64_t r = 0; r < 3; ++r) {
              for (int64_t s = 0; s < 2; ++s) {
                const int64_t row = 2 * i + r - 1, column = 2 * j + s - 1, channel = f / 3 * 2 + c;
                if (row < 0 || row >= 7 || column < 0 || column >= 6) continue;
                sum += x.data[static_cast<size_t>(((n * 4 + channel) * 7 + row) * 6 + column)] *
                       w.data[static_cast<size_t>(((f * 2 + c) * 3 + r) * 2 + s)];
              }
            }
          }
          EXPECT_NEAR(y.data[static_cast<size_t>(((n * 6 + f) * 4 + i) * 4 + j)], sum, 1e-12);
        }
      }
    }
  }
  const DoubleTensor line =
      value("conv(X, W, pad = 1)", {{"X", {{1, 1, 3}, {1, 2, 3}}}, {"W", {{1, 1, 3}, {1, 10, 100}}}});
  EXPECT_EQ(line.data, (std::vector<double>{210, 321, 32}));
}

/// Every word with arguments it takes: X, Y of one shape, W a matrix, v a row.
constexpr const char* kExpressions[] = {
    "matmul(X, W)",
    "matmul(X, Y, transpose_b = true)",
    "matmul(X, Y, transpose_a = true)",
    "gemv(X, v)",
    "softmax(X)",
    "log_softmax(X)",
    "rmsnorm(X, v, 1e-5)",
    "layernorm(X, v, v, 1e-5)",
    "row_sum(X * Y)",
    "row_mean(X)",
    "row_max(X + Y)",
    "row_min(X)",
    "row_prod(X)",
    "sum(X)",
    "cumsum(X)",
    "column_sum(X)",
    "gelu(X)",
    "gelu(X, by_tanh = true)",
    "silu(X)",
    "sigmoid(X)",
    "relu(X)",
    "exp(X)",
    "exp2(X)",
    "log(abs(X) + 1)",
    "log2(abs(X) + 1)",
    "tanh(X)",
    "erf(X)",
    "sqrt(abs(X))",
    "rsqrt(abs(X) + 0.1)",
    "sin(X)",
    "cos(X)",
    "square(X)",
    "X / (abs(Y) + 1)",
    "pow(abs(X) + 0.5, Y)",
    "min(X, Y)",
    "max(X, Y)",
    "swiglu(X, Y)",
    "-X",
    "silu(matmul(X, W) + v) * matmul(Y, W)",
    "X - row_max(X, keep = true) - log(row_sum(exp(X), keep = true))",
    "(X - row_mean(X, keep = true)) * rsqrt(row_mean(square(X - row_mean(X, keep = true)), keep = true) + 1e-5)"};

/// The expression in float32 lies within the bound, everywhere; and the bound says something: it is far smaller than
/// the values.
TEST(ReferenceBound, HoldsForTheExpressionInFloat32AndIsSmall) {
  std::mt19937_64 random(test::seed(1));
  for (const int64_t n : {1, 5, 33, 130}) {
    const NamedTensors arguments = {{"X", drawn({9, n}, random)},
                                    {"Y", drawn({9, n}, random)},
                                    {"W", drawn({n, n}, random)},
                                    {"v", drawn({n}, random)}};
    for (const char* text : kExpressions) {
      const lang::Reference reference = parsed(text);
      const auto exact = evaluate_reference(reference, arguments);
      const auto bounded = evaluate_bounded(reference, arguments, {DType::F32, DType::F32});
      const auto declared = evaluate_declared(reference, arguments, {DType::F32, DType::F32});
      ASSERT_TRUE(exact && bounded && declared) << text << (exact ? "" : exact.error().message);
      ASSERT_EQ(bounded->value.data.size(), declared->data.size()) << text;
      double size = 0, largest_bound = 0;
      for (size_t i = 0; i < exact->data.size(); ++i) {
        EXPECT_NEAR(bounded->value.data[i], exact->data[i], 1e-12 * (1 + std::fabs(exact->data[i]))) << text;
        EXPECT_LE(std::fabs(declared->data[i] - exact->data[i]), bounded->bound[i] + 1e-45)
            << text << " of " << n << " at " << i << " is " << exact->data[i];
        size = std::max(size, std::fabs(exact->data[i]));
        largest_bound = std::max(largest_bound, bounded->bound[i]);
      }
      if (n > 1) {
        EXPECT_LT(largest_bound, 2e-3 * size) << text << " of " << n;
      }
    }
  }
}

TEST(ReferenceBound, WhatHangsOnRoundingIsUndecided) {
  const NamedTensors x = {{"X", {{1, 3}, {1, 1 + 1e-9, 0}}}, {"Y", {{1, 3}, {1, 1, 1}}}};
  const Precision f32{DType::F32, DType::F32};
  const auto best = evaluate_bounded(parsed("row_argmax(X * 3)"), x, f32);
  ASSERT_TRUE(best);
  EXPECT_TRUE(std::isinf(best->bound[0]));
  const auto plain = evaluate_bounded(parsed("row_argmax(X)"), x, f32);
  EXPECT_EQ(plain->bound[0], 0) << "what is read is exact";
  const auto chosen = evaluate_bounded(parsed("select(X * 3 > Y * 3, 5, 7)"), x, f32);
  EXPECT_GE(chosen->bound[1], 2);
  EXPECT_EQ(chosen->bound[2], 0);
}

TEST(ReferenceBound, NarrowTypesBetweenWordsAreAllowedFor) {
  const NamedTensors x = {{"X", {{1, 2}, {1.234375, 2.5}}}};
  const auto narrow = evaluate_bounded(parsed("exp(X) * 2"), x, {DType::F32, DType::F16});
  const auto wide = evaluate_bounded(parsed("exp(X) * 2"), x, {DType::F32, DType::F32});
  EXPECT_GT(narrow->bound[0], 50 * wide->bound[0]);
}

}  // namespace
}  // namespace tilewright::kernels
