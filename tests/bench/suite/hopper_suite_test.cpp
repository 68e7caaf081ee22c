// The table of suite hopper: rows read off hopper.def, and lines worked out from what stages reported.
#include "bench/suite/hopper_suite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bench/oracle/workload.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

HopperReport report_of(const std::string& name, json result) {
  HopperReport report;
  report.device = "cuda:NVIDIA-H200:sm_90";
  for (HopperRow& row : hopper_rows()) {
    if (row.name == name) report.rows.push_back(std::move(row));
  }
  EXPECT_EQ(report.rows.size(), 1u) << name;
  report.records.push_back({std::move(result), ""});
  return report;
}

json race(const std::vector<double>& ours, const std::vector<double>& rival, const std::vector<double>& burst) {
  return {{"flops", 1e12},
          {"bytes", 1e9},
          {"contenders",
           {{{"candidate", "tile:x"}, {"name", "tile-x"}, {"version", "1"}, {"steady_ms", ours}, {"burst_ms", burst}},
            {{"candidate", "rival:cublaslt"},
             {"name", "cublaslt"},
             {"version", "13"},
             {"steady_ms", rival},
             {"burst_ms", burst}},
            {{"candidate", "worker:triton"}, {"refused", "Triton is not installed"}}}}};
}

TEST(HopperSuite, EveryRowHasAWorkloadThatReadsAndANameOfItsOwn) {
  std::set<std::string> names;
  for (const HopperRow& row : hopper_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const auto dtypes = parse_dtypes(row.dtypes);
    ASSERT_TRUE(dtypes.has_value()) << row.dtypes;
    if (!row.workload.empty()) {
      EXPECT_TRUE(parse_workload(row.workload, *dtypes).has_value()) << row.workload;
    }
    EXPECT_TRUE(row.kind != HopperKind::Race || !row.rivals.empty());
  }
  EXPECT_GE(names.size(), 30u);
}

TEST(HopperSuite, ARaceIsMetByTheMedianOfTheRoundsRatiosAndTheBurstRate) {
  const std::string name = "gemm gemm:8192x8192x8192:nt bf16";
  const auto met = hopper_lines(report_of(name, race({1.0, 1.1, 1.2}, {1.0, 1.1, 1.3}, {1.2, 1.2, 1.2}))).front();
  EXPECT_EQ(met.state, "met");
  EXPECT_EQ(met.ratio, "1.000 [1.000–1.083]");
  EXPECT_EQ(met.ours, "909 / 833 TFLOP/s");
  EXPECT_EQ(met.rivals, "cublaslt 909 / 833 *");
  EXPECT_EQ(met.goal, "≥ 0.97×, ≥ 815 TFLOP/s");
  EXPECT_EQ(hopper_lines(report_of(name, race({1.0}, {0.96}, {1.2}))).front().state, "missed");
  EXPECT_EQ(hopper_lines(report_of(name, race({1.0}, {1.0}, {1.3}))).front().state, "missed");  // 769 TFLOP/s
}

TEST(HopperSuite, AWrongResultIsNeverMetAndAMeanCountsWhatWasTimed) {
  json wrong = race({1.0}, {1.0}, {1.0});
  wrong["contenders"][0] = {{"candidate", "tile:x"}, {"wrong", "left elements unwritten"}};
  const auto lines = hopper_lines(report_of("gemm gemm:4096x4096x4096:nt bf16", wrong));
  EXPECT_EQ(lines.front().ours, "WRONG: left elements unwritten");
  EXPECT_EQ(lines.front().state, "missed");
  EXPECT_EQ(lines.size(), 1u);
  const auto timed = hopper_lines(report_of("gemm gemm:4096x4096x4096:nt bf16", race({1.0}, {1.02}, {1.0})));
  ASSERT_EQ(timed.size(), 2u);
  EXPECT_EQ(timed.back().work, "gemm: geometric mean of 1 of 1 rows");
  EXPECT_EQ(timed.back().ratio, "1.020");
  EXPECT_EQ(timed.back().state, "met");
}

TEST(HopperSuite, ColdCompilesCarryTheLimitsOfEveryKernel) {
  const json result = {{"compile_ms", {140, 150, 170}},
                       {"load_ms", {0.8, 0.9, 1.2}},
                       {"start_ms", {310, 320, 305}},
                       {"cached_peak_mb", {150, 151, 152}}};
  const auto lines = hopper_lines(report_of("cold-compile gemm:256x256x256:nt bf16", result));
  ASSERT_EQ(lines.size(), 4u);
  const std::vector<std::string> states = {"met", "met", "missed", "met"};
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i].state, states[i]) << lines[i].work;
  EXPECT_EQ(lines[2].work, "start to first result gemm:256x256x256:nt bf16");
}

TEST(HopperSuite, RareShapesNeedTheirCompilesTheirTimeAndRightResults) {
  const std::string name = "rare-shapes matmul.tile:matmul_nt bf16";
  json result = {{"total_ms", 380.0}, {"each_ms", {150.0, 2.0}}, {"compiles", 2}, {"wrong", json::array()}};
  EXPECT_EQ(hopper_lines(report_of(name, result)).front().state, "met");
  result["compiles"] = 3;
  EXPECT_EQ(hopper_lines(report_of(name, result)).front().state, "missed");
  result["compiles"] = 2;
  result["wrong"] = {"gemm:65x65x65:nt"};
  EXPECT_EQ(hopper_lines(report_of(name, result)).front().state, "missed");
}

TEST(HopperSuite, OwnWorkIsWhatALaunchCostsBesidesTheDriver) {
  const auto line = hopper_lines(report_of("launch gemm:64x64x64:nt bf16",
                                           {{"launch_ns", {4000, 4200, 4100}}, {"driver_ns", {3700, 3600, 3700}}}))
                        .front();
  EXPECT_EQ(line.ours, "400 ns above the driver's 3700 ns");
  EXPECT_EQ(line.state, "met");
}

}  // namespace
}  // namespace tilewright::bench
