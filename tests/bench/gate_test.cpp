#include "bench/gate.h"

#include <gtest/gtest.h>

namespace tilewright::bench {
namespace {

Cell warm(double value, double half_width = 0.01, Stage stage = Stage::Warm) {
  Cell cell = not_run({{"gemm:8x8x8:nn", "f32/f32/f32", "cpu:x:1c"}, "toy", stage}, "");
  cell.state = State::Measured;
  cell.value = value;
  cell.ci = Interval{value - half_width, value + half_width, 0.95};
  return cell;
}

Change judge(const Cell& before, const Cell& after) { return gate_cells({before}, {after}, {}).lines.at(0).change; }

TEST(Gate, GrowthBeyondTheMarginWithSeparateIntervalsIsWorse) {
  EXPECT_EQ(judge(warm(1), warm(1.05)), Change::Worse);
  EXPECT_EQ(judge(warm(1.05), warm(1)), Change::Better);
  EXPECT_EQ(judge(warm(1), warm(1.015, 0.001)), Change::Same);
  EXPECT_EQ(judge(warm(1, 0.2), warm(1.05, 0.2)), Change::Same);
}

TEST(Gate, AWrongResultIsBroken) {
  Cell before = warm(0, 0, Stage::Check), after = before;
  after.state = State::Failed;
  after.reason = "wrong result";
  EXPECT_EQ(judge(before, after), Change::Broken);
}

TEST(Gate, WhatWasMeasuredMustStillBe) {
  const GateLine missing = gate_cells({warm(1)}, {}, {}).lines.at(0);
  EXPECT_EQ(missing.change, Change::Missing);
  EXPECT_EQ(missing.before, 1);
  EXPECT_EQ(missing.after, std::nullopt) << "what is not there is not 0";
  EXPECT_EQ(judge(warm(1), not_run(key(warm(1)), "no device")), Change::Missing);
}

TEST(Gate, ATimeoutDecidesNothing) {
  Cell after = warm(2);
  after.stop_reason = "timeout";
  EXPECT_EQ(judge(warm(1), after), Change::NotComparable);
}

TEST(Gate, OtherEnvironmentsAreNoticed) {
  Cell after = warm(1);
  after.environment_digest = "other";
  EXPECT_FALSE(gate_cells({warm(1)}, {after}, {}).same_environment);
  EXPECT_TRUE(gate_cells({warm(1)}, {warm(1)}, {}).same_environment);
}

}  // namespace
}  // namespace tilewright::bench
