#include "bench/traffic/replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace tilewright::traffic {
namespace {

/// Times are planned: kernels take 1 ms a token of the key, the fallback `factor` ms a token of the prompt, a compile
/// 10 s.
class ToyOperator : public ReplayOperator {
 public:
  Result<double> compile(int64_t key) override {
    if (fails) return fail(DiagnosticCode::E1647, "planted");
    compiled.insert(key);
    return 10.0;
  }
  Result<Run> run(int64_t key, int64_t) override {
    EXPECT_TRUE(compiled.contains(key)) << "a kernel that was not compiled cannot run";
    ++kernel_runs;
    return Run{1e-3 * static_cast<double>(key) * slow_down, "k"};
  }
  Result<Run> run_fallback(int64_t prompt) override {
    ++fallback_runs;
    return Run{1e-3 * static_cast<double>(prompt) * factor, same_bits ? "k" : "f"};
  }
  double factor = 3, slow_down = 1;
  bool fails = false, same_bits = false;
  std::set<int64_t> compiled;
  int kernel_runs = 0, fallback_runs = 0;
};

Trace steady_trace(int count, int64_t prompt, double gap_s = 1) {
  Trace trace;
  for (int i = 0; i < count; ++i) trace.requests.push_back({gap_s * i, prompt, 1});
  return trace;
}

KeyPolicy pad10() { return KeyPolicy::parse("pad10").value(); }

TEST(Replay, BlockPaysTheCompileInTheFirstRequest) {
  ToyOperator kernels;
  const ReplayReport report = replay(steady_trace(3, 8, 100), pad10(), kernels, {}).value();
  EXPECT_DOUBLE_EQ(report.service.timeline[0].finish_s, 10.01);
  EXPECT_DOUBLE_EQ(report.service.timeline[1].finish_s, 100.01);
  EXPECT_EQ(report.jit_events, 1);
  EXPECT_DOUBLE_EQ(report.service.pad_waste, 1 - 8.0 / 10);
  EXPECT_EQ(kernels.fallback_runs, 0);
  EXPECT_EQ(to_json(report)["state"], "measured");
}

TEST(Replay, BackgroundServesTheFallbackMeanwhile) {
  ToyOperator kernels;
  const ReplayReport report =
      replay(steady_trace(20, 8), pad10(), kernels, {.handling = MissHandling::Background}).value();
  EXPECT_EQ(report.fallbacks, 10);  // arrivals 0 s … 9 s; the kernel is there at 10 s
  EXPECT_NEAR(report.service.p99_s, 0.024, 1e-12);
  EXPECT_FALSE(report.break_even_s.has_value());  // 10 × 14 ms saved are less than 10 s
}

TEST(Replay, PinnedNeverCompilesAndPricesWhatItLeaves) {
  ToyOperator kernels;
  Trace trace = steady_trace(4, 8);
  trace.requests.push_back({10, 25, 1});
  const ReplayReport report =
      replay(trace, pad10(), kernels, {.serving = ServingPolicy::Pinned, .pinned_keys = {10}}).value();
  EXPECT_EQ(report.jit_events, 0);
  EXPECT_EQ(report.fallbacks, 1);
  EXPECT_NEAR(report.left_on_table_s, 0.075 - 0.030, 1e-12);
}

// The fallback is the same kernel, and its times are noise: nothing is left on the table, and no noise becomes a gain.
TEST(Replay, PinnedPricesNoiseAsNothingAndALossAsALoss) {
  class Noisy : public ToyOperator {
   public:
    Result<Run> run(int64_t, int64_t) override { return Run{0.010 + 0.004 * next(), "k"}; }
    Result<Run> run_fallback(int64_t) override { return Run{base + 0.004 * next(), "k"}; }
    double base = 0.010;

   private:
    double next() { return static_cast<double>((state_ = state_ * 1103515245u + 12345u) >> 16 & 1023) / 1023; }
    uint32_t state_ = 1;
  };
  Trace trace = steady_trace(400, 25);
  for (size_t i = 0; i < trace.requests.size(); ++i) trace.requests[i].prompt = 5 + 10 * static_cast<int64_t>(i % 40);
  Noisy same, worse;
  const ReplayOptions options{.serving = ServingPolicy::Pinned};
  const ReplayReport report = replay(trace, pad10(), same, options).value();
  EXPECT_LE(report.left_low_s, 0);
  EXPECT_GE(report.left_high_s, 0);
  EXPECT_LT(std::abs(report.left_on_table_s), 400 * 0.001);
  worse.base = 0.002;
  const ReplayReport loss = replay(trace, pad10(), worse, options).value();
  EXPECT_LT(loss.left_high_s, 0) << "the fallback was the better one";
  EXPECT_EQ(to_json(loss)["left_on_table_ci_ms"].size(), 2u);
}

TEST(Replay, AdaptivePromotesOnAPairedVerdictAndSaysWhy) {
  ToyOperator kernels;
  std::vector<std::string> events;
  const ReplayOptions options{.serving = ServingPolicy::Adaptive, .telemetry = [&](const std::string& line) {
                                events.push_back(line);
                                return true;
                              }};
  const ReplayReport report = replay(steady_trace(3000, 8), pad10(), kernels, options).value();
  EXPECT_EQ(report.switches, 1);
  EXPECT_EQ(report.unexplained_switches, 0);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(events[0])["event"], "promote");
  EXPECT_LE(report.explored, 30);
  EXPECT_EQ(report.distinct_outputs, 2);
  EXPECT_GT(kernels.kernel_runs, 1500);
}

TEST(Replay, AdaptiveKeepsTheGeneralKernelWhenNothingIsFaster) {
  ToyOperator kernels;
  kernels.factor = 1;
  kernels.same_bits = true;
  const ReplayOptions options{.serving = ServingPolicy::Adaptive, .telemetry = [](const std::string&) { return true; }};
  const ReplayReport report = replay(steady_trace(2000, 8), pad10(), kernels, options).value();
  EXPECT_EQ(report.switches, 0);
  EXPECT_EQ(report.distinct_outputs, 1);
}

TEST(Replay, AdaptiveSpendsItsFewTrialsOnOneKeyAfterAnother) {
  ToyOperator kernels;
  Trace trace = steady_trace(3000, 8);
  for (size_t i = 0; i < trace.requests.size(); i += 3)
    trace.requests[i].prompt = 18 + static_cast<int64_t>(i % 5) * 10;
  std::vector<std::string> events;
  const ReplayOptions options{.serving = ServingPolicy::Adaptive, .telemetry = [&](const std::string& line) {
                                events.push_back(line);
                                return true;
                              }};
  const ReplayReport report = replay(trace, pad10(), kernels, options).value();
  EXPECT_LE(report.explored, 30);
  ASSERT_GE(events.size(), 2u) << "spread over six keys, 30 trials would decide none";
  EXPECT_EQ(nlohmann::json::parse(events[0])["key"], 10) << "two thirds of the requests ask for it";
}

TEST(Replay, AdaptiveGoesBackAboveTheSlo) {
  ToyOperator kernels;
  const ReplayOptions options{
      .serving = ServingPolicy::Adaptive, .slo_s = 0.005, .telemetry = [](const std::string&) { return true; }};
  const ReplayReport report = replay(steady_trace(3000, 8), pad10(), kernels, options).value();
  EXPECT_EQ(report.rollbacks, 1);
  EXPECT_EQ(report.switches, 2);
}

TEST(Replay, ATelemetryErrorDropsAdaptiveToPinned) {
  ToyOperator kernels;
  const ReplayOptions options{.serving = ServingPolicy::Adaptive,
                              .telemetry = [](const std::string&) { return false; }};
  const ReplayReport report = replay(steady_trace(3000, 8), pad10(), kernels, options).value();
  EXPECT_TRUE(report.fell_to_pinned);
  EXPECT_LT(kernels.kernel_runs, 40) << "only explored requests ran the kernel";
}

TEST(Replay, AFailingOperatorIsAnError) {
  ToyOperator kernels;
  kernels.fails = true;
  EXPECT_EQ(code_text(replay(steady_trace(3, 8), pad10(), kernels, {}).error().code), "E1647");
}

}  // namespace
}  // namespace tilewright::traffic
