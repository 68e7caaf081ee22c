#include "measure/stopping.h"

#include <gtest/gtest.h>

#include "measure/process_summary.h"
#include "measure/random.h"
#include "support/seed.h"

namespace tilewright::measure {
namespace {

template <typename Next>
StopMachine run(const StopRule& rule, Next next, double overhead_ms = 0) {
  StopMachine machine(rule);
  double elapsed = 0;
  for (int i = 0; machine.reason() == StopReason::Continue && i < 2'000'000; ++i) {
    const double sample = next(i);
    elapsed += sample + overhead_ms;
    machine.add(sample, elapsed);
  }
  return machine;
}

TEST(Stopping, QuietSamplesStopAtPrecisionAfterHalfASecond) {
  const StopMachine machine = run({}, [](int) { return 2.0; });
  EXPECT_EQ(machine.reason(), StopReason::Precision);
  EXPECT_EQ(machine.samples().size(), 250u);
}

TEST(Stopping, LongSamplesStillTakeThirty) {
  const StopMachine machine = run({}, [](int) { return 100.0; });
  EXPECT_EQ(machine.reason(), StopReason::Precision);
  EXPECT_EQ(machine.samples().size(), 30u);
}

TEST(Stopping, VeryLongSamplesRunIntoTheTimeout) {
  const StopMachine machine = run({}, [](int) { return 1000.0; });
  EXPECT_EQ(machine.reason(), StopReason::Timeout);
  EXPECT_EQ(machine.samples().size(), 15u);
}

TEST(Stopping, HopelessNoiseStopsAtItsFloorBeforeTheTimeout) {
  Random random(test::seed(3));
  const StopMachine machine = run({}, [&](int) { return 50 + 40 * random.uniform(); });
  EXPECT_EQ(machine.reason(), StopReason::NoiseFloor);
}

TEST(Stopping, NoiseThatKeepsGrowingIsATimeout) {
  Random random(test::seed(4));
  const StopMachine machine = run({}, [&](int i) { return 10 + (0.01 * i * i) * random.uniform(); });
  EXPECT_EQ(machine.reason(), StopReason::Timeout);
}

TEST(Stopping, TimeBetweenSamplesCountsTowardsTheTimeout) {
  const StopMachine machine = run(
      {}, [](int) { return 1.0; }, 999);
  EXPECT_EQ(machine.reason(), StopReason::Timeout);
  EXPECT_EQ(machine.samples().size(), 15u);
}

TEST(ProcessSummary, IsTheMedianOfMediansWithinTheirRange) {
  const ProcessSummary s = summarize({{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}, {5, 5, 5}, {6, 6, 6}});
  EXPECT_EQ(s.value, 3.5);
  EXPECT_EQ(s.interval->low, 1);
  EXPECT_EQ(s.interval->high, 6);
  EXPECT_NEAR(s.interval->level, 0.96875, 1e-12);
  EXPECT_NEAR(s.between_share, 1, 1e-12);
  EXPECT_EQ(s.samples, 18);
}

TEST(ProcessSummary, OneProcessHasNoInterval) {
  EXPECT_FALSE(summarize({{1, 2, 3}}).interval);
  EXPECT_EQ(summarize({{1, 2, 3}}).between_share, 0);
}

}  // namespace
}  // namespace tilewright::measure
