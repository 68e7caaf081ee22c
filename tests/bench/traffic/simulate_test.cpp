#include "bench/traffic/simulate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/traffic/latency.h"
#include "bench/traffic/rare_keys.h"

namespace tilewright::traffic {
namespace {

KeyPolicy policy(const std::string& text) { return KeyPolicy::parse(text).value(); }

Trace trace_of(std::vector<Request> requests) {
  Trace trace;
  trace.requests = std::move(requests);
  return trace;
}

/// Log-normal prompts with a heavy tail and exponential gaps: the histogram of a chat service, seeded.
Trace synthetic(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<double> gap(5.5);
  std::lognormal_distribution<double> prompt(6.6, 0.9);
  Trace trace;
  double t = 0;
  for (int64_t i = 0; i < count; ++i) {
    trace.requests.push_back({t, std::clamp<int64_t>(static_cast<int64_t>(prompt(random)), 1, 16000), 100});
    t += gap(random);
  }
  return trace;
}

TEST(KeyPolicy, RoundsUpAndNeverDown) {
  EXPECT_EQ(policy("exact").key(77), 77);
  EXPECT_EQ(policy("pad64").key(64), 64);
  EXPECT_EQ(policy("pad64").key(65), 128);
  EXPECT_EQ(policy("pow2").key(1), 1);
  EXPECT_EQ(policy("pow2").key(65), 128);
  const KeyPolicy buckets = KeyPolicy::from_buckets({512, 128, 128}, "b").value();
  EXPECT_EQ(buckets.key(1), 128);
  EXPECT_EQ(buckets.key(129), 512);
  EXPECT_EQ(buckets.key(513), 1024);
  for (const char* name : {"exact", "pad16", "pad128", "pow2"}) {
    for (int64_t p = 1, last = 0; p < 3000; ++p) {
      const int64_t key = policy(name).key(p);
      ASSERT_GE(key, p);
      ASSERT_GE(key, last);
      last = key;
    }
  }
}

TEST(KeyPolicy, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"", "pad", "pad0", "pad-1", "padx", "pow3", "buckets=/nonexistent", "buckets=/"}) {
    EXPECT_FALSE(KeyPolicy::parse(text).has_value()) << text;
  }
  EXPECT_FALSE(KeyPolicy::from_buckets({}, "b").has_value());
  EXPECT_FALSE(KeyPolicy::from_buckets({0, 4}, "b").has_value());
}

TEST(KeyPolicy, ReadsBucketsFromListsAndSnapshots) {
  const std::string list = testing::TempDir() + "buckets.txt";
  std::ofstream(list) << "# sizes\n256\n64\n";
  EXPECT_EQ(policy("buckets=" + list).key(65), 256);
  const std::string file = testing::TempDir() + "snapshot.json";
  std::ofstream(file) << snapshot(trace_of({{0, 60, 0}, {1, 200, 0}}), policy("pad64"));
  EXPECT_EQ(policy("buckets=" + file).key(65), 256);
}

TEST(Simulate, BlockByHand) {
  const ServiceModel model{.base_s = 1, .per_token_s = 0.1, .fallback_factor = 2, .compile_s = 10};
  // key 10, 10, 20: services 1+1+10, 1+1, 1+2+10.
  const SimulationResult result =
      simulate(trace_of({{0, 9, 0}, {1, 10, 0}, {100, 11, 0}}), policy("pad10"), MissHandling::Block, model);
  EXPECT_DOUBLE_EQ(result.timeline[0].finish_s, 12);
  EXPECT_DOUBLE_EQ(result.timeline[1].start_s, 12);
  EXPECT_DOUBLE_EQ(result.timeline[1].finish_s, 14);
  EXPECT_DOUBLE_EQ(result.timeline[2].finish_s, 113);
  EXPECT_EQ(result.keys, 2);
  EXPECT_DOUBLE_EQ(result.compile_load, 0.2);
  EXPECT_DOUBLE_EQ(result.pad_waste, 1 - 30.0 / 40.0);
  EXPECT_DOUBLE_EQ(result.p50_s, 13);  // latencies 12, 13, 13
  EXPECT_FALSE(result.steady_at_s.has_value());
}

TEST(Simulate, BackgroundByHand) {
  const ServiceModel model{.base_s = 1, .per_token_s = 0.1, .fallback_factor = 2, .compile_s = 10};
  const SimulationResult result = simulate(trace_of({{0, 9, 0}, {1, 15, 0}, {9, 9, 0}, {11, 9, 0}, {16, 15, 0}}),
                                           policy("pad10"), MissHandling::Background, model);
  // Key 10 is ready at 10; key 20 starts at 2.8, its compile waits for the compiler: ready at 20.
  EXPECT_DOUBLE_EQ(result.timeline[0].finish_s, 0 + 1 + 2 * 0.1 * 9);
  EXPECT_DOUBLE_EQ(result.timeline[1].finish_s, 2.8 + 1 + 2 * 0.1 * 15);
  EXPECT_TRUE(result.timeline[2].missed);
  EXPECT_FALSE(result.timeline[3].missed);
  EXPECT_DOUBLE_EQ(result.timeline[3].finish_s - result.timeline[3].start_s, 1 + 0.1 * 10);
  EXPECT_TRUE(result.timeline[4].missed);
  EXPECT_DOUBLE_EQ(result.fallback_share, 0.8);
}

TEST(Simulate, SteadyIsTheFirstRequestAfterWhichNoWindowHasFiveMisses) {
  std::vector<uint8_t> missed(1200, 0);
  EXPECT_EQ(steady_index(missed), 0);
  for (int i : {10, 20, 30, 40, 50}) missed[i] = 1;
  EXPECT_EQ(steady_index(missed), 11);  // windows that start at 0..10 hold all five
  for (int i = 1195; i < 1200; ++i) missed[i] = 1;
  EXPECT_EQ(steady_index(missed), std::nullopt);
  EXPECT_EQ(steady_index(std::vector<uint8_t>(499, 0)), std::nullopt);
  EXPECT_EQ(miss_rates(missed), (std::vector<double>{0.01, 0, 0.025}));
}

TEST(Simulate, FewerKeysNeverCompileMore) {
  const uint32_t seed = 7;
  const Trace trace = synthetic(20000, seed);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const SimulationResult exact = simulate(trace, policy("exact"), MissHandling::Block, {});
  const SimulationResult pad128 = simulate(trace, policy("pad128"), MissHandling::Block, {});
  const SimulationResult pow2 = simulate(trace, policy("pow2"), MissHandling::Block, {});
  EXPECT_GT(exact.keys, pad128.keys);
  EXPECT_GT(pad128.keys, pow2.keys);
  EXPECT_GT(exact.p99_s, pad128.p99_s);
  EXPECT_GT(pow2.pad_waste, pad128.pad_waste);
  EXPECT_EQ(exact.pad_waste, 0);
}

TEST(Simulate, RefusesAnImpossibleModel) {
  EXPECT_TRUE(check(ServiceModel{}).has_value());
  EXPECT_FALSE(check(ServiceModel{.base_s = -1}).has_value());
  EXPECT_FALSE(check(ServiceModel{.compile_s = NAN}).has_value());
  EXPECT_FALSE(check(ServiceModel{.fallback_factor = 0}).has_value());
}

TEST(Rare, ByHand) {
  // Key 10 gains 0.1 × (2·9 − 10) = 0.8 a request; key 20 gains 0.1 × (2·11 − 20) = 0.2.
  const ServiceModel model{.base_s = 0, .per_token_s = 0.1, .fallback_factor = 2, .compile_s = 1};
  const RareReport report = find_rare_keys(trace_of({{0, 9, 0}, {1, 11, 0}, {2, 9, 0}}), policy("pad10"), model);
  ASSERT_EQ(report.keys.size(), 2u);
  EXPECT_NEAR(report.keys[0].gain_s, 1.6, 1e-12);
  EXPECT_TRUE(report.keys[0].worth_jit);
  EXPECT_NEAR(*report.keys[0].break_even_calls, 1.25, 1e-12);
  EXPECT_NEAR(report.keys[1].gain_s, 0.2, 1e-12);
  EXPECT_FALSE(report.keys[1].worth_jit);
  EXPECT_EQ(report.singletons, 1);
  EXPECT_EQ(report.never_pay, 1);
  EXPECT_NEAR(report.never_pay_requests, 1.0 / 3, 1e-12);
  EXPECT_NEAR(report.net_all_s, 0.6 - 0.8, 1e-12);
  EXPECT_NEAR(report.net_chosen_s, 0.6, 1e-12);
  EXPECT_NEAR(report.keys[1].cumulative, 1, 1e-12);
}

TEST(Stats, DescribesAndSnapshots) {
  const Trace trace = trace_of({{0, 5, 1}, {1, 5, 2}, {2, 70, 3}});
  const TraceStats stats = describe(trace);
  EXPECT_EQ(stats.distinct_prompts, 2);
  EXPECT_EQ(stats.singleton_prompts, 1);
  EXPECT_EQ(stats.prompt_p50, 5);
  EXPECT_EQ(stats.prompt_max, 70);
  EXPECT_DOUBLE_EQ(stats.gap_cv, 0);
  const nlohmann::json json = snapshot(trace, policy("pad64"));
  EXPECT_EQ(json["keys"][0]["key"], 64);
  EXPECT_EQ(json["keys"][0]["count"], 2);
  EXPECT_EQ(json["keys"][1]["key"], 128);
}

// The published table of docs/method.md, on the conversation trace itself: set TILEWRIGHT_TRACE to its path.
TEST(Simulate, ReproducesThePublishedTable) {
  const char* path = std::getenv("TILEWRIGHT_TRACE");
  if (!path) GTEST_SKIP() << "TILEWRIGHT_TRACE is not set to AzureLLMInferenceTrace_conv.csv";
  const Trace trace = load_trace(path).value();
  const auto near = [](double value, double expected) { EXPECT_NEAR(value, expected, 0.005 * expected); };
  const SimulationResult exact = simulate(trace, policy("exact"), MissHandling::Block, {});
  EXPECT_EQ(exact.keys, 2339);
  near(exact.p50_s, 396.173);
  near(exact.p99_s, 590.656);
  EXPECT_FALSE(exact.steady_at_s);
  const SimulationResult behind = simulate(trace, policy("exact"), MissHandling::Background, {});
  near(behind.p99_s, 0.254);
  near(behind.fallback_share, 0.175);
  const SimulationResult pad64 = simulate(trace, policy("pad64"), MissHandling::Block, {});
  EXPECT_EQ(pad64.keys, 106);
  near(*pad64.steady_at_s, 2644);
  const SimulationResult pad128 = simulate(trace, policy("pad128"), MissHandling::Block, {});
  near(pad128.p99_s, 1.118);
  near(*pad128.steady_at_s, 311);
  const SimulationResult pow2 = simulate(trace, policy("pow2"), MissHandling::Block, {});
  near(pow2.p99_s, 0.375);
  near(pow2.pad_waste, 0.303);
  const RareReport rare = find_rare_keys(trace, policy("exact"), {});
  EXPECT_EQ(rare.singletons, 957);
  EXPECT_EQ(rare.never_pay, 2322);
  EXPECT_NEAR(rare.net_all_s, -2639.1, 0.05);
  EXPECT_NEAR(rare.net_chosen_s, 10.7, 0.05);
  const RareReport rare128 = find_rare_keys(trace, policy("pad128"), {});
  EXPECT_EQ(rare128.never_pay, 38);
  EXPECT_NEAR(rare128.net_all_s, 65.6, 0.05);
  EXPECT_NEAR(rare128.net_chosen_s, 99.4, 0.05);
}

}  // namespace
}  // namespace tilewright::traffic
