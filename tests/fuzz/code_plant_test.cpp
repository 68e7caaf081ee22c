// Mistakes planted in code generation, which only running the code can show.
#include <gtest/gtest.h>

#include "fuzz/campaign.h"

namespace tilewright::fuzz {
namespace {

TEST(PlantedInCode, IsFoundAndShrunk) {
  const auto subject = make_native_subject();
  if (!subject) GTEST_SKIP() << subject.error().message;
  const CampaignReport report = run_campaign(**subject, {.cases = 100,
                                                         .seed = 1,
                                                         .plant = {.pass = "lower_arithmetic", .number = 1},
                                                         .most_failures = 1,
                                                         .shrink_tries = 60});
  ASSERT_EQ(report.failures.size(), 1u) << "not found in " << report.cases << " cases";
  EXPECT_NE(report.failures[0].kernel.find("reduce"), std::string::npos) << report.failures[0].kernel;
}

}  // namespace
}  // namespace tilewright::fuzz
