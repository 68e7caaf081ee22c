#include "base/plant.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Plant, ParsesPassAndNumber) {
  const auto plant = parse_plant("tile_gemm:2");
  ASSERT_TRUE(plant);
  EXPECT_TRUE(plant->is("tile_gemm", 2));
  EXPECT_FALSE(plant->is("tile_gemm", 1));
  EXPECT_FALSE(plant->is("tile", 2));
  EXPECT_EQ(to_string(*plant), "tile_gemm:2");
  EXPECT_TRUE(Plant{}.is_empty());
}

TEST(Plant, RefusesEverythingElse) {
  for (const char* text : {"", "a", ":1", "a:", "a:0", "a:-1", "a:1x", "a:99999999999"}) {
    const auto plant = parse_plant(text);
    ASSERT_FALSE(plant) << text;
    EXPECT_EQ(plant.error().code, DiagnosticCode::E1210);
  }
}

}  // namespace
}  // namespace tilewright
