#include "bench/suite/suite_result.h"

#include <gtest/gtest.h>

#include "bench/suite/suite_table.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

/// Ours takes 2 ms, a rival 4 ms, another 3 ms and one was refused; the ceiling moves between 100 and 200 GFLOP/s.
json contest() {
  json ours{{"candidate", "tile:kernels/matmul.tile:matmul"},
            {"name", "ours"},
            {"dtypes", "f32"},
            {"flops", 2e8},
            {"bytes", 4e6}};
  json slow{{"candidate", "rival:slow"}, {"name", "slow"}, {"version", "1.0"},
            {"dtypes", "f32"},           {"flops", 2e8},   {"bytes", 4e6}};
  json fast = slow, gone{{"candidate", "rival:gone"}, {"dtypes", "f32"}, {"refused", "it is not installed"}};
  fast["name"] = "fast";
  for (int i = 0; i < 21; ++i) {
    const double weather = 1 + 0.5 * (i % 2);  // disturbs all contenders of a round, and the ceiling, alike
    ours["ms"].push_back(2 * weather);
    slow["ms"].push_back(4 * weather);
    fast["ms"].push_back(3 * weather);
    for (json* one : {&ours, &slow, &fast}) (*one)["ceiling"].push_back(200 / weather);
  }
  return {{"contenders", {ours, slow, fast, gone}}};
}

SuiteRow row_of(double goal, double share) {
  SuiteRow row;
  row.what = {
      "matmul.tile:matmul", "gemm:100x100x100", "f32", {"rival:slow", "rival:fast", "rival:gone"}, true, goal, share};
  row.contestants = parse_contest(contest());
  return row;
}

TEST(SuiteResult, SpeedIsThatOfPairsAndTheBestRivalIsTheFastest) {
  const SuiteRow row = row_of(1.4, 49);
  EXPECT_EQ(row.best_rival(), 2u);
  EXPECT_NEAR(row.speed_over(1).ratio, 2.0, 1e-12);
  EXPECT_NEAR(row.speed_over(2).ratio, 1.5, 1e-12);
  EXPECT_EQ(speed_goal(row), Goal::Met);
  EXPECT_EQ(speed_goal(row_of(1.6, 0)), Goal::Missed);
}

TEST(SuiteResult, ShareOfTheCeilingDoesNotFollowTheWeather) {
  const SuiteRow row = row_of(0, 49);
  EXPECT_NEAR(row.ours().share(CeilingProbe::Kind::MultiplyAdd), 50, 1e-9);
  EXPECT_EQ(share_goal(row, CeilingProbe::Kind::MultiplyAdd), Goal::Met);
  EXPECT_EQ(share_goal(row_of(0, 51), CeilingProbe::Kind::MultiplyAdd), Goal::Missed);
}

TEST(SuiteResult, TheMeanCountsTimedRowsAgainstLibrariesOfOneThreadCount) {
  std::vector<SuiteRow> rows(3, row_of(1, 0));
  for (double& ms : rows[1].contestants[0].ms) ms *= 4;  // 0.375 × the best
  rows[2].threads = 2;
  rows.push_back(row_of(1, 0));
  rows.back().what.against_libraries = false;
  const SuiteMean mean = mean_of(rows, 1, 7);
  EXPECT_EQ(mean.rows, 2);
  EXPECT_NEAR(mean.speed, 0.75, 1e-12);
  EXPECT_EQ(mean.worst, &rows[1]);
  EXPECT_LE(mean.interval.low, mean.speed);
  EXPECT_GE(mean.interval.high, mean.speed);
  EXPECT_EQ(mean_of(rows, 3, 7).rows, 0);
}

TEST(SuiteResult, ARowThatDidNotRunHasNoVerdict) {
  SuiteRow row = row_of(1, 50);
  row.contestants[0].ms.clear();
  row.contestants[0].wrong = "max error 1 > 0.1";
  EXPECT_EQ(speed_goal(row), Goal::Unknown);
  EXPECT_EQ(share_goal(row, CeilingProbe::Kind::MultiplyAdd), Goal::Unknown);
  EXPECT_EQ(mean_of({row}, 1, 7).rows, 0);
}

TEST(SuiteTable, SaysWhoWonWithIntervalsAndWhoWasNotThere) {
  SuiteReport report{*find_suite("cpu-gemm"), {1}, {row_of(1.4, 0)}, 1};
  const std::string text = render_suite(report, false);
  EXPECT_NE(text.find("1.500 [1.500, 1.500] *"), std::string::npos) << text;
  EXPECT_NE(text.find("≥ 1.4× met"), std::string::npos) << text;
  EXPECT_NE(text.find("rival:gone on gemm:100x100x100 f32: it is not installed"), std::string::npos) << text;
  EXPECT_NE(text.find("1 thread: geometric mean over 1 rows, against the best rival of each: 1.500"), std::string::npos)
      << text;
  EXPECT_NE(text.find("50 %"), std::string::npos) << text;
}

TEST(Suites, EveryCaseIsAWorkloadAndEveryRivalGetsOne) {
  for (const Suite& suite : all_suites()) {
    EXPECT_FALSE(suite.cases.empty()) << suite.name;
    for (const SuiteCase& what : suite.cases) {
      for (const Contender& contender : what.contenders()) {
        const auto dtypes = parse_dtypes(contender.dtypes);
        ASSERT_TRUE(dtypes.has_value()) << contender.dtypes;
        EXPECT_TRUE(parse_workload(contender.workload, *dtypes).has_value()) << contender.workload;
        EXPECT_FALSE(contender.candidate.empty());
      }
    }
  }
}

TEST(Suites, AFilterThatFitsNoRowIsRefused) {
  SuiteOptions options;
  options.suite = *find_suite("cpu-memory");
  options.threads = {1};
  options.filter = "gelu";
  const auto report = run_suite(options);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().message, "no row of suite cpu-memory has 'gelu' in it");
  EXPECT_EQ(report.error().help, "its first row is 'softmax:4096x4096 f32'");
}

}  // namespace
}  // namespace tilewright::bench
