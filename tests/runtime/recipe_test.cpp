#include "runtime/recipe.h"

#include <gtest/gtest.h>

#include <random>

#include "base/dtype.h"
#include "runtime/element.h"
#include "runtime/matmul_recipe.h"

namespace tilewright::runtime {
namespace {

// The C ABI's dtype numbers are the compiler's.
#define TW_DTYPE(enumerator, spelling, width, kind, torch)         \
  static_assert(static_cast<int>(tilewright::DType::enumerator) == \
                static_cast<int>(kNumbers[static_cast<int>(tilewright::DType::enumerator)]));
constexpr tw_dtype kNumbers[] = {TW_BOOL, TW_I8,  TW_I16,  TW_I32, TW_I64, TW_U8,   TW_U16, TW_U32,
                                 TW_U64,  TW_F16, TW_BF16, TW_F32, TW_F64, TW_E4M3, TW_E5M2};
static_assert(std::size(kNumbers) == kDTypeCount);
#include "base/dtype.def"
#undef TW_DTYPE

TEST(Element, NamesAreTheCompilers) {
  const std::pair<std::string_view, int> rows[] = {
#define TW_DTYPE(enumerator, spelling, width, kind, torch) {spelling, width},
#include "base/dtype.def"
#undef TW_DTYPE
  };
  ASSERT_EQ(std::size(rows), static_cast<size_t>(kDTypeCount));
  for (int i = 0; i < kDTypeCount; ++i) {
    EXPECT_EQ(element(static_cast<tw_dtype>(i)).name, rows[i].first);
    EXPECT_EQ(element(static_cast<tw_dtype>(i)).bits, rows[i].second);
  }
}

TEST(Element, FloatsRoundOnceToNearestEven) {
  EXPECT_EQ(float_bits(1.0, TW_F16), 0x3c00);
  EXPECT_EQ(float_bits(-2.0, TW_F16), 0xc000);
  EXPECT_EQ(float_bits(65519.0, TW_F16), 0x7bff);
  EXPECT_EQ(float_bits(65520.0, TW_F16), 0x7c00);
  EXPECT_EQ(float_bits(0x1p-24, TW_F16), 1);
  EXPECT_EQ(float_bits(0x1p-25, TW_F16), 0);
  EXPECT_EQ(float_bits(0x1.8p-25, TW_F16), 1);
  EXPECT_EQ(float_bits(1.0 + 0x1p-11, TW_F16), 0x3c00);            // a tie goes to even
  EXPECT_EQ(float_bits(1.0 + 0x1p-11 + 0x1p-40, TW_F16), 0x3c01);  // just above the tie
  EXPECT_EQ(float_bits(1.0, TW_BF16), 0x3f80);
  EXPECT_EQ(float_bits(1.0 + 0x1p-8, TW_BF16), 0x3f80);
  EXPECT_EQ(float_bits(1.0 + 0x1p-8 + 0x1p-45, TW_BF16), 0x3f81);  // lost if rounded through f32 first
  EXPECT_EQ(float_bits(0.5, TW_F32), 0x3f000000);
  EXPECT_EQ(integer_bits(300, TW_U8), 44);
  EXPECT_EQ(integer_bits(200, TW_I8), -56);
  EXPECT_EQ(integer_bits(7, TW_BOOL), 1);
}

TEST(Recipe, ReadsBackEqual) {
  Recipe recipe = matmul_recipe();
  recipe.launches[0].target = LaunchTarget::Cuda;
  recipe.launches[0].cluster = {2, 1, 1};
  recipe.launches[0].tensor_maps = {{.pointer = 1,
                                     .data_type = 6,
                                     .extents = {slot(1), slot(2)},
                                     .stride_bytes = {slot(5)},
                                     .box = {64, 128},
                                     .element_strides = {1, 1},
                                     .swizzle = 3}};
  recipe.tensors[2].may_alias = {0};
  recipe.cpu_features = {"avx2", "fma"};
  const std::string bytes = serialise(recipe);
  const Result<Recipe> read = parse_recipe(bytes);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, recipe);
  EXPECT_EQ(serialise(*read), bytes);
}

TEST(Recipe, EveryTruncationIsRefused) {
  const std::string bytes = serialise(matmul_recipe());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_recipe(bytes.substr(0, size)).has_value()) << size;
  EXPECT_FALSE(parse_recipe(bytes + '\0').has_value());
}

TEST(Recipe, DamagedBytesNeverGiveAnUnsafeRecipe) {
  const std::string bytes = serialise(matmul_recipe());
  const uint32_t seed = std::getenv("TW_SEED") ? std::strtoul(std::getenv("TW_SEED"), nullptr, 10) : 1;
  SCOPED_TRACE("TW_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) damaged[random() % damaged.size()] = static_cast<char>(random());
    const Result<Recipe> read = parse_recipe(damaged);
    if (!read) continue;
    ++accepted;
    EXPECT_TRUE(check(*read).has_value());
    EXPECT_EQ(serialise(*read), damaged);  // nothing was lost or invented
  }
  EXPECT_GT(accepted, 0);
}

TEST(Recipe, ChecksNameThePart) {
  Recipe recipe = matmul_recipe();
  recipe.launches[0].grid = {slot(40)};
  EXPECT_EQ(check(recipe).error().message, "launch recipe: launch of matmul: expression reads slot 40 of 11");
  recipe = matmul_recipe();
  recipe.slots[10].value = slot(10);  // only lower slots may be read
  EXPECT_EQ(check(recipe).error().message, "launch recipe: slot 10: expression reads slot 10 of 10");
  recipe = matmul_recipe();
  recipe.tensors[1].axes[1].binds = 0;
  EXPECT_EQ(check(recipe).error().message, "launch recipe: axis 1 of B binds a slot that names another axis");
  recipe = matmul_recipe();
  recipe.tensors[0].facts.alignment = 3;
  EXPECT_EQ(check(recipe).error().message, "launch recipe: A: an alignment must be a power of two");
}

}  // namespace
}  // namespace tilewright::runtime
