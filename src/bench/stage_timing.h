// The sampled loops of a ready candidate. The clock is ours: no library function lies between two reads of it.
#pragma once

#include <vector>

#include "bench/clock_check.h"
#include "bench/stage_setup.h"
#include "measure/clock.h"
#include "measure/flush.h"
#include "measure/stopping.h"

namespace tilewright::bench {

struct LoopResult {
  std::vector<double> samples_ms;
  measure::StopReason reason = measure::StopReason::Continue;
};

class LaunchTimer {
 public:
  LaunchTimer(Ready& ready, StageChannel& channel, uint64_t seed) : ready_(ready), channel_(channel), random_(seed) {}

  /// One launch between two clock reads, or what the worker says, after the preparation asked for.
  Result<double> sample(bool flush);
  /// One launch after a flush, on the inputs as they are.
  Result<double> sample_flushed();
  /// Launches until the code, its threads and the clocks of the processor are awake.
  Status warm_up();
  Result<LoopResult> run(const measure::StopRule& rule, bool flush);
  /// `count` launches in a row with nothing between them; ms for each by a clock of another kind.
  Result<double> batch(int count);
  /// The same by the device's own clock where there is a device: `count` launches that follow one another.
  Result<double> span(int count);
  /// The same as replays of a graph where launches can be captured.
  Result<double> span_in_graphs(int count);

  /// Of samples without a flush, `own_ms` in the median.
  Result<ClockCheck> check_clock(double own_ms);
  /// `count` launches in a row by a clock of another kind, and what a worker says of them.
  Result<TimedBatch> timed_batch(int count);

  std::string_view flush_method() const {
    return ready_.is_on_device ? "writes over twice the L2 cache" : flush_.method();
  }
  double clock_overhead_ns() const { return clock_.overhead_ns(); }
  const measure::FastClock& clock() const { return clock_; }
  /// On a device: how long the host is busy with one launch.
  Result<double> host_sample();

 private:
  Status flush();
  Result<double> timed_launch(bool is_flushed);
  bool is_remote_on_device() const { return ready_.is_on_device && ready_.candidate->is_remote(); }

  Ready& ready_;
  StageChannel& channel_;
  measure::Random random_;
  measure::FastClock clock_;
  measure::CacheFlush flush_;
};

/// Returns when the threads of the contender before have stopped spinning, so that they take no processor from the
/// next: after 8 ms at least, when the processor time of this process no longer grows. A library may spin for very long
/// (OpenBLAS 0.3.34: 2^26 cycles, 33 ms at 2 GHz; some OpenMP libraries 200 ms): not waited for beyond 400 ms.
void let_threads_sleep();

}  // namespace tilewright::bench
