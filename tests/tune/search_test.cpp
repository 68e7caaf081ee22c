#include "tune/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "measure/random.h"
#include "support/seed.h"
#include "tune/payoff.h"
#include "tune/runoff.h"

namespace tilewright::tune {
namespace {

Space grid(int a, int b) {
  Parameter first{.name = "a", .values = {}, .default_value = {}},
      second{.name = "b", .values = {}, .default_value = {}};
  for (int i = 0; i < a; ++i) first.values.emplace_back(int64_t{i});
  for (int i = 0; i < b; ++i) second.values.emplace_back(int64_t{i});
  return Space::make({first, second}, {}).value();
}

/// A bowl with its bottom at (13, 6).
double bowl(const Config& config) {
  return 1 + std::pow(static_cast<double>(config.number("a", 0) - 13), 2) +
         std::pow(static_cast<double>(config.number("b", 0) - 6), 2);
}

std::vector<size_t> run_all(const Space& space, SearchOptions options) {
  Search search(space, options);
  std::vector<size_t> order;
  for (auto batch = search.next(0); !batch.empty(); batch = search.next(0)) {
    for (const size_t point : batch) {
      order.push_back(point);
      search.record(point, true, bowl(space.points()[point]));
    }
  }
  return order;
}

TEST(Search, ASpaceThatFitsIsTriedInDeclaredOrder) {
  const Space space = grid(4, 3);
  const std::vector<size_t> order = run_all(space, {});
  ASSERT_EQ(order.size(), 12u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(Search, NeverTriesAPointTwiceAndStopsAtTheRuns) {
  const uint64_t seed = test::seed(5);
  const Space space = grid(20, 12);
  const std::vector<size_t> order = run_all(space, {.runs = 50, .seed = seed, .incumbent = 77});
  EXPECT_EQ(order.size(), 50u);
  EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), 50u);
  EXPECT_EQ(order[0], 77u);
  EXPECT_EQ(order[1], 0u);  // the default
  EXPECT_EQ(order, run_all(space, {.runs = 50, .seed = seed, .incumbent = 77}));
  EXPECT_NE(order, run_all(space, {.runs = 50, .seed = seed + 1, .incumbent = 77}));
}

TEST(Search, FollowsTheBowlBetterThanTheShuffleAlone) {
  const Space space = grid(20, 12);
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<size_t> order = run_all(space, {.runs = 60, .seed = seed});
    found += std::ranges::any_of(order, [&](size_t p) { return bowl(space.points()[p]) == 1; });
  }
  EXPECT_GE(found, 14);  // a shuffle of 60 of 240 finds it in 5 of 20
}

TEST(Search, StopsAtTheBudgetBetweenGenerations) {
  const Space space = grid(20, 12);
  Search search(space, {.budget_s = 10});
  std::vector<size_t> batch = search.next(0);
  EXPECT_EQ(batch.size(), 8u);
  EXPECT_TRUE(search.next(0).empty());  // the generation is not recorded yet
  for (const size_t point : batch) search.record(point, point % 2 == 0, 1);
  EXPECT_FALSE(search.ran_out_of_budget());
  EXPECT_TRUE(search.next(10).empty());
  EXPECT_TRUE(search.ran_out_of_budget());
}

TEST(Search, BestRanksByTimeThenDeclaredOrder) {
  const Space space = grid(2, 3);
  Search search(space, {});
  search.record(4, true, 2);
  search.record(3, true, 1);
  search.record(1, true, 1);
  search.record(0, false, 0);
  EXPECT_EQ(search.best(2), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(search.best(9), (std::vector<size_t>{1, 3, 4}));
}

/// `level` with ±0.2 % of noise.
std::vector<double> times(double level, uint64_t seed) {
  measure::Random random(seed);
  std::vector<double> samples;
  for (int i = 0; i < 52; ++i) samples.push_back(level * (1 + 0.002 * random.normal()));
  return samples;
}

TEST(Runoff, ATieKeepsTheIncumbent) {
  const RunoffResult result = judge_runoff({{7, times(1.00, 1)}, {2, times(0.995, 2)}, {1, times(1.01, 3)}});
  EXPECT_EQ(result.winner, 7u);
  EXPECT_TRUE(result.incumbent_kept);
  EXPECT_EQ(result.why, "no contestant is faster than the incumbent by more than 2 %");
}

TEST(Runoff, OfTiedWinnersTheEarliestInDeclaredOrder) {
  const RunoffResult result =
      judge_runoff({{7, times(1.00, 1)}, {5, times(0.80, 2)}, {3, times(0.805, 3)}, {1, times(0.90, 4)}});
  EXPECT_EQ(result.winner, 3u);
  EXPECT_FALSE(result.incumbent_kept);
  EXPECT_TRUE(result.rows[1].is_tied_with_winner);
  EXPECT_TRUE(result.rows[2].is_tied_with_winner);
  EXPECT_FALSE(result.rows[3].is_tied_with_winner);
}

TEST(Runoff, WithoutAnIncumbentAllMayLead) {
  const RunoffResult result =
      judge_runoff({{7, times(1.00, 1)}, {5, times(0.999, 2)}, {9, times(1.3, 3)}}, {.first_is_incumbent = false});
  EXPECT_EQ(result.winner, 5u);
}

TEST(Payoff, WeighsByShareAndSaysNever) {
  const Payoff payoff = weigh({{128, 0.5, 2.0, 1.0}, {256, 0.25, 4.0, 4.0}}, 1000, 10);
  EXPECT_DOUBLE_EQ(payoff.covered, 0.75);
  EXPECT_DOUBLE_EQ(payoff.gain_ms, 0.5);
  EXPECT_DOUBLE_EQ(*payoff.break_even_calls, 2000);
  EXPECT_DOUBLE_EQ(*payoff.break_even_s, 200);
  EXPECT_EQ(describe(payoff), "pays after 2000 calls (3 min of this traffic)");
  EXPECT_EQ(describe(weigh({{128, 1, 1.0, 1.0}}, 1000)), "never pays");
}

}  // namespace
}  // namespace tilewright::tune
