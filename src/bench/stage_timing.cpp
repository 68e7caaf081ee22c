#include "bench/stage_timing.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace tilewright::bench {
namespace {

/// Of all threads of this process.
int64_t processor_ns() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

void LaunchTimer::flush() {
  for (const auto span : ready_.memory.spans()) flush_.flush(span);
  flush_.flush({ready_.workspace.get(), static_cast<size_t>(ready_.workspace_bytes)});
  flush_.finish();
}

Result<double> LaunchTimer::sample(bool with_flush) {
  if (with_flush) {
    ready_.memory.perturb_inputs(random_);
    flush();
  }
  return timed_launch();
}

Result<double> LaunchTimer::sample_flushed() {
  flush();
  return timed_launch();
}

Result<double> LaunchTimer::timed_launch() {
  if (ready_.candidate->is_remote()) {
    auto times = ready_.candidate->launch_batch(ready_.memory.tensors(), 1);
    if (!times) return std::unexpected(times.error());
    return times->launch_ms.front();
  }
  const int64_t start = clock_.now_ns();
  const Status launched = ready_.launch();
  const int64_t end = clock_.now_ns();
  if (!launched) return std::unexpected(launched.error());
  return std::max(0.0, static_cast<double>(end - start) - clock_.overhead_ns()) * 1e-6;
}

Status LaunchTimer::warm_up() {
  constexpr int kLeast = 3, kMost = 1000;
  constexpr int64_t kEnough = 50'000'000;
  const int64_t start = measure::kernel_ns();
  for (int i = 0; i < kLeast || (i < kMost && measure::kernel_ns() - start < kEnough); ++i) {
    if (auto launched = sample(false); !launched) return std::unexpected(launched.error());
  }
  return {};
}

Result<LoopResult> LaunchTimer::run(const measure::StopRule& rule, bool with_flush) {
  constexpr int64_t kTellEvery = 500'000'000;
  measure::StopMachine machine(rule);
  const int64_t start = measure::kernel_ns();
  int64_t told = start;
  while (machine.reason() == measure::StopReason::Continue) {
    auto ms = sample(with_flush);
    if (!ms) return std::unexpected(ms.error());
    const int64_t now = measure::kernel_ns();
    machine.add(*ms, static_cast<double>(now - start) * 1e-6);
    if (now - told > kTellEvery) {
      channel_.step("sampling");
      told = now;
    }
  }
  return LoopResult{machine.samples(), machine.reason()};
}

Result<double> LaunchTimer::batch(int count) {
  const int64_t start = measure::kernel_ns();
  if (ready_.candidate->is_remote()) {
    if (auto times = ready_.candidate->launch_batch(ready_.memory.tensors(), count); !times)
      return std::unexpected(times.error());
  } else {
    for (int i = 0; i < count; ++i) {
      if (auto launched = ready_.launch(); !launched) return std::unexpected(launched.error());
    }
  }
  return static_cast<double>(measure::kernel_ns() - start) * 1e-6 / count;
}

void let_threads_sleep() {
  constexpr auto kStep = std::chrono::milliseconds(4);
  constexpr int kLeast = 2, kMost = 100;
  constexpr int64_t kBusyNs = 1'000'000;  // in one step
  int64_t used = processor_ns();
  for (int step = 1; step <= kMost; ++step) {
    std::this_thread::sleep_for(kStep);
    const int64_t before = std::exchange(used, processor_ns());
    if (step >= kLeast && used - before < kBusyNs) return;
  }
}

bool clocks_agree(double own_ms, double batch_ms, double trip_ms) {
  constexpr double kTolerance = 1.25;
  return batch_ms - trip_ms <= own_ms * kTolerance + 2e-4;
}

}  // namespace tilewright::bench
