#include "driver/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/program.h"

namespace tilewright::driver {
namespace {

Program kernel_of(const std::string& text) {
  const auto source = lang::parse_source(text, "sizes.tile");
  EXPECT_TRUE(source);
  auto program = load_program(*source, {.path = "sizes.tile"});
  EXPECT_TRUE(program) << program.error().rendered;
  return std::move(*program);
}

constexpr const char* kCopy = R"(kernel sizes(X: f32[N]) -> (Y: f32[N])
{
  grid (b: ceildiv(N, 256)) threads(32) { copy(X[b*256 :+ 256], Y[b*256 :+ 256]) }
}
)";

TEST(Sizes, WhatDoesNotFitTheMemoryIsRefusedWithNumbers) {
  const Program program = kernel_of(kCopy);
  const auto arrays = make_arrays(program.kernel, {.dims = {{"N", int64_t{1} << 62}}});
  ASSERT_FALSE(arrays);
  EXPECT_EQ(arrays.error().code, DiagnosticCode::E1411);
  EXPECT_THAT(
      arrays.error().message,
      testing::MatchesRegex("the arguments need 34359738368.0 GiB of memory \\(X is f32\\[4611686018427387904\\], "
                            "17179869184.0 GiB\\); this machine has [0-9.]+ GiB"));
}

TEST(Sizes, ZeroIsASize) {
  const Program program = kernel_of(kCopy);
  const auto arrays = make_arrays(program.kernel, {.dims = {{"N", 0}}});
  ASSERT_TRUE(arrays);
  EXPECT_TRUE(arrays->tensors[0].data.empty());
}

}  // namespace
}  // namespace tilewright::driver
