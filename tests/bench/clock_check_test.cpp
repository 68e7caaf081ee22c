// Clocks that tell the truth and clocks that do not, with launches whose cost is known.
#include "bench/clock_check.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tilewright::bench {
namespace {

/// A worker whose launch takes `ms`, of which it tells `single` in single launches and `in_row` in a row; a request
/// costs `trip_ms`.
struct Planned {
  double ms = 1, single = 1, in_row = 1, trip_ms = 0.2;
};

ClockCheck check(const Planned& p) {
  auto found = check_clock(p.single * p.ms, {.is_remote = true, .patience_ns = 50'000'000},
                           [&](int count) -> Result<TimedBatch> {
                             return TimedBatch{p.ms + p.trip_ms / count, p.in_row * p.ms, p.in_row * p.ms};
                           });
  EXPECT_TRUE(found);
  return *found;
}

TEST(ClockCheck, BelievesAWorkerThatTellsTheTruth) {
  for (const double ms : {0.002, 0.02, 0.2, 2.0, 20.0, 500.0}) EXPECT_TRUE(check({.ms = ms}).agree) << ms;
}

TEST(ClockCheck, BelievesAnHonestWorkerOnABusyMachine) { EXPECT_TRUE(check({.ms = 2, .trip_ms = 30}).agree); }

TEST(ClockCheck, SeesPartsOfTheTruthAtAnyLength) {
  for (const double ms : {0.02, 0.2, 2.0, 30.0}) {
    for (const double part : {0.0, 0.3, 0.7}) {
      const ClockCheck found = check({.ms = ms, .single = part, .in_row = part});
      EXPECT_FALSE(found.agree) << part << " of " << ms;
      EXPECT_LE(found.count * ms, 600) << "a batch is short whatever the worker claims";
    }
  }
}

TEST(ClockCheck, SeesOneThatLiesOfSingleLaunchesOnly) {
  const ClockCheck found = check({.ms = 2, .single = 0.3});
  EXPECT_FALSE(found.agree);
  EXPECT_TRUE(disagreement(found).starts_with("timer-disagrees: its clock says 0.6 ms a launch, "))
      << disagreement(found);
}

TEST(ClockCheck, OfOurOwnClockOneQuietBatchIsEnough) {
  int batches = 0;
  auto found = check_clock(100, {}, [&](int) -> Result<TimedBatch> {
    return TimedBatch{++batches < 10 ? 300.0 : 100.0, {}, {}};
  });
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->agree);
}

TEST(ClockCheck, SaysBothTimes) {
  EXPECT_EQ(disagreement(parse_clock_check(to_json({0.6, 2, 0.6, 10, false}))),
            "timer-disagrees: its clock says 0.6 ms a launch, 10 in a row took 2 ms each");
}

}  // namespace
}  // namespace tilewright::bench
