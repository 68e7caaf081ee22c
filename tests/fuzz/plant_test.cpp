// Every planted mistake must be found and shrunk: the fuzzer's own test. Native code is not needed: a wrong choice of a
// pass shows on the interpreted plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "fuzz/campaign.h"
#include "transform/pass.h"

namespace tilewright::fuzz {
namespace {

constexpr std::array kPlants = {"forward_copies:1", "join_gemm_steps:1", "fold_clears:1", "lower_access:1",
                                "pack_panels:1",    "gemm_dot:1",        "gemm_target:1", "lower_tiles:1",
                                "lower_fused:1",    "expand_math:1"};

class PlantedMistake : public testing::TestWithParam<const char*> {};

TEST_P(PlantedMistake, IsFoundAndShrunk) {
  const auto plant = parse_plant(GetParam());
  ASSERT_TRUE(plant);
  const auto subject = make_planned_subject();
  const CampaignReport report =
      run_campaign(*subject, {.cases = 3000, .seed = 1, .plant = *plant, .most_failures = 1, .shrink_tries = 300});
  ASSERT_EQ(report.failures.size(), 1u) << "not found in " << report.cases << " cases";
  EXPECT_LE(report.failures[0].operations, 96) << report.failures[0].kernel;
  std::printf("%s: found by case %ld, shrunk to %d operations\n", GetParam(),
              static_cast<long>(report.failures[0].number), report.failures[0].operations);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedMistake, testing::ValuesIn(kPlants), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

TEST(PlantedMistakes, EveryPassHasOne) {
  for (const transform::PassInfo& pass : transform::passes()) {
    const bool has_one =
        std::ranges::any_of(kPlants, [&](std::string_view p) { return p.starts_with(std::string(pass.name) + ":"); });
    EXPECT_TRUE(has_one) << pass.name;
  }
}

}  // namespace
}  // namespace tilewright::fuzz
