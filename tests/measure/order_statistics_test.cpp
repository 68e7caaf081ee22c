#include "measure/order_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "measure/random.h"
#include "support/seed.h"

namespace tilewright::measure {
namespace {

std::vector<double> ranks(int n) {
  std::vector<double> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 1.0);
  return out;
}

TEST(Binomial, MatchesClosedForms) {
  EXPECT_NEAR(binomial_cdf(0, 6, 0.5), 1.0 / 64, 1e-15);
  EXPECT_NEAR(binomial_cdf(1, 64, 0.1), std::pow(0.9, 64) + 64 * 0.1 * std::pow(0.9, 63), 1e-14);
  EXPECT_NEAR(binomial_cdf(5, 10, 0.5), 0.623046875, 1e-12);
  EXPECT_EQ(binomial_cdf(-1, 5, 0.3), 0);
  EXPECT_EQ(binomial_cdf(5, 5, 0.3), 1);
}

// Ranks of the usual tables of non-parametric intervals for a median at 95 % (e.g. Conover, table A3).
TEST(MedianInterval, RanksAreThoseOfTheTables) {
  const struct {
    int n, low, high;
  } rows[] = {{6, 1, 6},   {8, 1, 8},   {9, 2, 8},    {10, 2, 9},   {15, 4, 12},
              {20, 6, 15}, {25, 8, 18}, {30, 10, 21}, {40, 14, 27}, {50, 18, 33}};
  for (const auto& row : rows) {
    const auto interval = median_interval(ranks(row.n), 0.95);
    ASSERT_TRUE(interval) << row.n;
    EXPECT_EQ(interval->low, row.low) << row.n;
    EXPECT_EQ(interval->high, row.high) << row.n;
    EXPECT_GE(interval->level, 0.95);
  }
}

TEST(MedianInterval, EqualsSearchFromTheBottomForEveryCount) {
  for (int n = 1; n <= 700; ++n) {
    int64_t k = 0;
    while (k + 1 <= n / 2 && 2 * binomial_cdf(k, n, 0.5) <= 0.05) ++k;
    const auto interval = median_interval(ranks(n), 0.95);
    ASSERT_EQ(interval.has_value(), k > 0) << n;
    ASSERT_EQ(interval ? interval->low : 0, static_cast<double>(k)) << n;
  }
}

TEST(MedianInterval, SixSamplesCoverWith969) {
  EXPECT_NEAR(median_interval(ranks(6), 0.95)->level, 0.96875, 1e-12);
  EXPECT_FALSE(median_interval(ranks(5), 0.95));
  EXPECT_FALSE(median_interval({}, 0.95));
}

TEST(MedianInterval, CoversTheTrueMedianOfASkewedDistribution) {
  Random random(test::seed(7));
  int covered = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> x(31);
    for (double& v : x) v = std::exp(random.normal());
    const auto interval = median_interval(sorted(x), 0.95);
    covered += interval->low <= 1 && 1 <= interval->high;
  }
  EXPECT_GE(covered, 1870);
  EXPECT_LE(covered, 1980);
}

TEST(QuantileInterval, AgreesWithTheMedianAndCoversTheTail) {
  const auto half = quantile_interval(ranks(100), 0.5, 0.95);
  EXPECT_EQ(half->low, median_interval(ranks(100), 0.95)->low);
  EXPECT_EQ(half->high, median_interval(ranks(100), 0.95)->high);
  EXPECT_FALSE(quantile_interval(ranks(100), 0.99, 0.95));
  const auto tail = quantile_interval(ranks(2000), 0.99, 0.95);
  ASSERT_TRUE(tail);
  EXPECT_LT(tail->low, 1980);
  EXPECT_GT(tail->high, 1980);
  EXPECT_GE(tail->level, 0.95);
}

TEST(Percentile, IsTheOneBasedRank) {
  EXPECT_EQ(percentile(ranks(100), 0.99), 99);
  EXPECT_EQ(percentile(ranks(10), 0.5), 5);
  EXPECT_EQ(percentile(ranks(3), 1.0), 3);
  EXPECT_EQ(percentile(ranks(1), 0.01), 1);
}

// MLPerf Inference rules, "early stopping": 64 queries for the 90th percentile, 662 for the 99th, 6,636 for the 99.9th.
TEST(EarlyStopping, PublishedQueryCounts) {
  EXPECT_EQ(early_stopping_queries(0.90, 1), 64);
  EXPECT_EQ(early_stopping_queries(0.99, 1), 662);
  EXPECT_EQ(early_stopping_queries(0.999, 1), 6636);
}

TEST(EarlyStopping, TooFewSamplesSupportNothing) {
  EXPECT_FALSE(supported_percentile(ranks(661), 0.99));
  EXPECT_EQ(supported_percentile(ranks(662), 0.99), 661);
  EXPECT_EQ(supported_percentile(ranks(64), 0.90), 63);
}

TEST(Outliers, AreCountedNotDropped) {
  std::vector<double> x = ranks(100);
  x.push_back(1e6);
  EXPECT_EQ(count_outliers(x), 1);
  EXPECT_EQ(count_outliers(ranks(100)), 0);
}

}  // namespace
}  // namespace tilewright::measure
