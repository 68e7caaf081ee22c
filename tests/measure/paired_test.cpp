#include "measure/paired.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/latin_square.h"
#include "measure/random.h"
#include "support/seed.h"

namespace tilewright::measure {
namespace {

struct Machine {
  double noise = 0.01;   ///< lognormal, each sample
  double spikes = 0.05;  ///< share of samples hit by something else, up to twice as slow
  double drift = 0;      ///< the last round is this much slower than the first
};

struct Pair {
  std::vector<double> a, b;
};

/// Runs two programs in the harness's order on a machine that drifts with every single launch.
Pair simulate(double a_ms, double b_ms, int rounds, const Machine& machine, uint64_t seed) {
  Random random(seed);
  Pair out{std::vector<double>(static_cast<size_t>(rounds)), std::vector<double>(static_cast<size_t>(rounds))};
  int launch = 0;
  const auto order = latin_rounds(2, rounds, seed ^ 0x5eed);
  for (size_t round = 0; round < order.size(); ++round) {
    for (int who : order[round]) {
      double t = (who == 0 ? a_ms : b_ms) * std::exp(machine.noise * random.normal());
      t *= 1 + machine.drift * launch++ / (2.0 * rounds);
      if (random.uniform() < machine.spikes) t *= 1 + random.uniform();
      (who == 0 ? out.a : out.b)[round] = t;
    }
  }
  return out;
}

Verdict verdict(const Pair& pair) { return compare_paired(pair.a, pair.b).verdict; }

TEST(Paired, IdenticalCodeIsNeverCalledDifferentOften) {
  const uint64_t seed = test::seed(1);
  int wrong = 0;
  for (uint64_t s = 0; s < 400; ++s) {
    const Verdict v = verdict(simulate(1, 1, 52, {.noise = 0.05}, seed * 1000 + s));
    wrong += v == Verdict::Faster || v == Verdict::Slower;
  }
  EXPECT_LE(wrong, 20) << "of 400";
}

TEST(Paired, FortySeedsOnAQuietMachineAreSame) {
  const uint64_t seed = test::seed(2);
  int fine = 0;
  for (uint64_t s = 0; s < 40; ++s) {
    const Verdict v = verdict(simulate(1, 1, 52, {}, seed * 1000 + s));
    fine += v == Verdict::Same || v == Verdict::Inconclusive;
  }
  EXPECT_GE(fine, 38);
}

TEST(Paired, FivePercentIsFoundInNineteenOfTwenty) {
  const uint64_t seed = test::seed(3);
  int found = 0;
  for (uint64_t s = 0; s < 20; ++s) found += verdict(simulate(1.05, 1, 52, {}, seed * 1000 + s)) == Verdict::Slower;
  EXPECT_GE(found, 19);
}

TEST(Paired, ThreePercentIsFoundInNinetyFivePercentOfRuns) {
  const uint64_t seed = test::seed(4);
  int found = 0;
  for (uint64_t s = 0; s < 400; ++s) {
    found += verdict(simulate(1.03, 1, 52, {.noise = 0.01 / std::sqrt(2.0), .spikes = 0.02}, seed * 1000 + s)) ==
             Verdict::Slower;
  }
  EXPECT_GE(found, 380);
}

TEST(Paired, DriftBiasesTheRatioByLessThanOnePercent) {
  const uint64_t seed = test::seed(5);
  for (uint64_t s = 0; s < 40; ++s) {
    const Pair pair = simulate(1, 1, 52, {.noise = 0.002, .spikes = 0, .drift = 0.20}, seed * 1000 + s);
    EXPECT_NEAR(compare_paired(pair.a, pair.b).ratio, 1, 0.01) << "seed " << seed * 1000 + s;
  }
}

TEST(Paired, SwappingRivalsSwapsTheVerdict) {
  const Pair pair = simulate(1.1, 1, 52, {}, 6);
  const PairedResult ab = compare_paired(pair.a, pair.b), ba = compare_paired(pair.b, pair.a);
  EXPECT_EQ(ab.verdict, Verdict::Slower);
  EXPECT_EQ(ba.verdict, Verdict::Faster);
  EXPECT_NEAR(ab.ratio * ba.ratio, 1, 1e-12);
  EXPECT_NEAR(ab.interval95.low * ba.interval95.high, 1, 1e-12);
}

TEST(Paired, FewRoundsDecideNothing) {
  EXPECT_EQ(compare_paired(std::vector<double>(5, 2.0), std::vector<double>(5, 1.0)).verdict, Verdict::Inconclusive);
  EXPECT_EQ(compare_paired({}, {}).verdict, Verdict::Inconclusive);
}

TEST(Paired, RoundsStayBetweenTheDefaultAndTheLimit) {
  EXPECT_EQ(rounds_needed(0.001), 52);
  EXPECT_EQ(rounds_needed(1.0), 400);
  EXPECT_GT(rounds_needed(0.05), 100);
}

TEST(Gate, PassesOnNoiseAndFailsOnADifference) {
  const Pair same = simulate(1, 1, 52, {}, 8), different = simulate(1, 1.1, 52, {}, 8),
             noisy = simulate(1, 1, 20, {.noise = 0.5}, 8);
  EXPECT_TRUE(judge_identical(same.a, same.b).passed);
  EXPECT_EQ(judge_identical(different.a, different.b).why, "identical code looks different");
  EXPECT_EQ(judge_identical(noisy.a, noisy.b).why, "too noisy");
}

TEST(LatinSquare, EveryRivalTakesEveryPlaceEquallyOften) {
  const auto order = latin_rounds(5, 50, 11);
  std::vector<std::vector<int>> count(5, std::vector<int>(5));
  for (const auto& round : order) {
    for (size_t place = 0; place < 5; ++place) ++count[place][static_cast<size_t>(round[place])];
  }
  for (const auto& row : count) EXPECT_EQ(row, std::vector<int>(5, 10));
}

TEST(LatinSquare, SameSeedSameOrder) {
  EXPECT_EQ(latin_rounds(3, 30, 5), latin_rounds(3, 30, 5));
  EXPECT_NE(latin_rounds(3, 30, 5), latin_rounds(3, 30, 6));
}

}  // namespace
}  // namespace tilewright::measure
