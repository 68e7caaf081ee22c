// Every planted mistake must be found and shrunk: the fuzzer's own test. Native code is not needed: a wrong choice of a
// pass shows on the interpreted plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/plants.h"
#include "transform/pass.h"

namespace tilewright::fuzz {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const PlantInfo& p : plants()) {
    if (!p.needs_native_code && !p.is_gpu) out.emplace_back(p.name);
  }
  return out;
}

class PlantedMistake : public testing::TestWithParam<std::string> {};

TEST_P(PlantedMistake, IsFoundAndShrunk) {
  const auto plant = parse_plant(GetParam());
  ASSERT_TRUE(plant);
  const auto subject = make_planned_subject();
  const CampaignReport report =
      run_campaign(*subject, {.cases = 3000, .seed = 1, .plant = *plant, .most_failures = 1, .shrink_tries = 300});
  ASSERT_EQ(report.failures.size(), 1u) << "not found in " << report.cases << " cases";
  EXPECT_LE(report.failures[0].operations, 144) << report.failures[0].kernel;
  std::printf("%s: found by case %ld, shrunk to %d operations\n", GetParam().c_str(),
              static_cast<long>(report.failures[0].number), report.failures[0].operations);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedMistake, testing::ValuesIn(names()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

TEST(PlantedMistakes, EveryPassHasOne) {
  for (const transform::PassInfo& pass : transform::passes()) {
    const bool has_one = std::ranges::any_of(
        plants(), [&](const PlantInfo& p) { return p.name.starts_with(std::string(pass.name) + ":"); });
    EXPECT_TRUE(has_one) << pass.name;
  }
}

TEST(PlantedMistakes, AnUnknownNameIsRefused) {
  const auto plant = find_plant("forward_copy:1");
  ASSERT_FALSE(plant);
  EXPECT_EQ(
      render(plant.error()),
      "error[E1210]: 'forward_copy:1' does not name a planted mistake\n  help: did you mean 'forward_copies:1'?\n");
}

}  // namespace
}  // namespace tilewright::fuzz
