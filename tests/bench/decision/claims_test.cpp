#include "bench/decision/claims.h"

#include <gtest/gtest.h>

namespace tilewright::decision {
namespace {

ClaimTable parsed(std::string_view text) {
  Result<ClaimTable> table = parse_claims(text, "claims.csv", "f16");
  EXPECT_TRUE(table.has_value()) << (table ? "" : render(table.error()));
  return table ? *table : ClaimTable{};
}

std::vector<std::string> codes(const std::vector<Lint>& lints) {
  std::vector<std::string> all;
  for (const Lint& lint : lints) all.push_back(lint.code);
  return all;
}

TEST(Claims, SecondsThatAreMillisecondsAreFlagged) {
  // 2·4096³ flops at 550 TFLOP/s take 0.25 ms; the heading says seconds.
  const ClaimTable table =
      parsed("| M | N | K | Latency (s) | TFLOPS |\n|---|---|---|---|---|\n| 4096 | 4096 | 4096 | 0.25 | 550 |\n");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].shape, "gemm:4096x4096x4096:nn");
  EXPECT_DOUBLE_EQ(*table.rows[0].time_ms, 250);
  const std::vector<Lint> lints = lint_claims(table, find_peak("NVIDIA H100", "f16"));
  EXPECT_EQ(codes(lints), (std::vector<std::string>{"unit_mismatch×1000"}));
  EXPECT_EQ(lints[0].line, 3);
}

TEST(Claims, ARateAboveThePeakIsPhysics) {
  const std::vector<Lint> by_rate =
      lint_claims(parsed("M,N,K,time_ms,TFLOP/s\n4096,4096,4096,0.1,1374\n"), find_peak("h100", "f16"));
  EXPECT_EQ(codes(by_rate), (std::vector<std::string>{"physics"}));
  EXPECT_EQ(by_rate[0].message, "the claimed 1374 TFLOP/s is above the device's peak of 989.4");
  const std::vector<Lint> by_time =
      lint_claims(parsed("shape,time (us)\ngemm:4096x4096x4096:nn,100\n"), find_peak("h100", "f16"));
  EXPECT_EQ(codes(by_time), (std::vector<std::string>{"unchecked", "physics"}));
}

TEST(Claims, ConsistentRowsAreClean) {
  EXPECT_TRUE(
      lint_claims(parsed("M,N,K,time_ms,TFLOP/s\n4096,4096,4096,0.25,550\n"), find_peak("H200", "bf16/f32/bf16"))
          .empty());
  EXPECT_EQ(codes(lint_claims(parsed("M,N,K,time_ms,TFLOP/s\n4096,4096,4096,0.5,550\n"), find_peak("H200", "bf16"))),
            (std::vector<std::string>{"inconsistent"}));
  EXPECT_EQ(find_peak("abacus", "f16").has_value(), false);
}

TEST(Claims, BecomeClaimedCellsThatCarryTheirSource) {
  const ClaimTable table = parsed("shape,kernel,Latency (s),TFLOPS\ngemm:4096x4096x4096:nn,v3,0.25,550\n");
  const std::vector<Lint> lints = lint_claims(table, find_peak("h100", "f16"));
  const std::vector<bench::Cell> cells = claimed_cells(table, lints,
                                                       {.source = "README",
                                                        .commit = "abc",
                                                        .as_of = "2026-01-31",
                                                        .device = "H100",
                                                        .candidate = "theirs",
                                                        .dtype = "f16/f32/f16"});
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].state, bench::State::Claimed);
  EXPECT_EQ(cells[0].detail["source"], "README");
  EXPECT_EQ(cells[0].detail["label"], "kernel=v3");
  EXPECT_EQ(cells[0].detail["lint"][0]["code"], "unit_mismatch×1000");
}

TEST(Claims, RefusesWithTheLine) {
  const auto refusal = [](std::string_view text) {
    const Result<ClaimTable> table = parse_claims(text, "c.csv", "f16");
    return table ? std::string() : render(table.error());
  };
  EXPECT_NE(refusal("").find("the table has no row"), std::string::npos);
  EXPECT_NE(
      refusal("shape,speed\nx,1\n").find("c.csv:1:1: error[E1660]: no column holds a time with its unit or a rate"),
      std::string::npos);
  EXPECT_NE(refusal("shape,ms\nx,1\ny\n").find("c.csv:3:1: error[E1660]: expected 2 columns, found 1"),
            std::string::npos);
  EXPECT_NE(refusal("shape,ms\nx,-1\n").find("expected a number > 0, found '-1'"), std::string::npos);
  EXPECT_NE(refusal("shape,ms\nx,fast\n").find("found 'fast'"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::decision
