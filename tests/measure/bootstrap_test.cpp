#include "measure/bootstrap.h"

#include <gtest/gtest.h>

#include "measure/random.h"
#include "support/seed.h"

namespace tilewright::measure {
namespace {

TEST(Bootstrap, SameSeedSameInterval) {
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8};
  const auto mean = [&](std::span<const size_t> drawn) {
    double sum = 0;
    for (size_t i : drawn) sum += x[i];
    return sum / static_cast<double>(drawn.size());
  };
  EXPECT_EQ(bootstrap_interval(x.size(), {.seed = 4}, mean), bootstrap_interval(x.size(), {.seed = 4}, mean));
  EXPECT_NE(bootstrap_interval(x.size(), {.seed = 4}, mean).low,
            bootstrap_interval(x.size(), {.resamples = 50, .seed = 5}, mean).low);
}

TEST(Bootstrap, CoversTheMeanOfNormals) {
  Random random(test::seed(9));
  int covered = 0;
  for (uint64_t trial = 0; trial < 300; ++trial) {
    std::vector<double> x(40);
    for (double& v : x) v = 3 + random.normal();
    const auto interval =
        bootstrap_interval(x.size(), {.resamples = 400, .seed = trial}, [&](std::span<const size_t> drawn) {
          double sum = 0;
          for (size_t i : drawn) sum += x[i];
          return sum / static_cast<double>(drawn.size());
        });
    covered += interval.low <= 3 && 3 <= interval.high;
  }
  EXPECT_GE(covered, 265);
}

TEST(Random, BelowIsUniformAndInRange) {
  Random random(test::seed(10));
  std::vector<int> count(7);
  for (int i = 0; i < 70'000; ++i) ++count[random.below(7)];
  for (int c : count) EXPECT_NEAR(c, 10'000, 500);
}

TEST(Random, StreamIsTheSameEverywhere) { EXPECT_EQ(Random(0).next(), 0xe220a8397b1dcdafu); }

}  // namespace
}  // namespace tilewright::measure
