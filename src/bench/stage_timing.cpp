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

Status LaunchTimer::flush() {
  if (ready_.session) return ready_.session->flush_l2();
  if (ready_.is_on_device) return {};  // the worker flushes
  for (const auto span : ready_.memory.spans()) flush_.flush(span);
  flush_.flush({ready_.workspace.get(), static_cast<size_t>(ready_.workspace_bytes)});
  flush_.finish();
  return {};
}

Result<double> LaunchTimer::host_sample() {
  return ready_.session->host_timed([&] { return ready_.launch(); });
}

Result<double> LaunchTimer::sample(bool with_flush) {
  if (with_flush) {
    // A worker on a device would move whole tensors there for it; its last output, on new inputs, is checked.
    if (!is_remote_on_device()) ready_.memory.perturb_inputs(random_);
    if (auto flushed = flush(); !flushed) return std::unexpected(flushed.error());
  }
  // On a device an untimed launch keeps the stream busy until the timed one is enqueued.
  if (!with_flush && ready_.session) {
    if (auto launched = ready_.launch(); !launched) return std::unexpected(launched.error());
  }
  return timed_launch(with_flush);
}

Result<double> LaunchTimer::sample_flushed() {
  if (auto flushed = flush(); !flushed) return std::unexpected(flushed.error());
  return timed_launch(true);
}

Result<double> LaunchTimer::timed_launch(bool is_flushed) {
  if (ready_.candidate->is_remote()) {
    auto times = ready_.candidate->launch_batch(
        ready_.memory.tensors(), {.flush = is_flushed && ready_.is_on_device, .only_timed = ready_.is_on_device});
    if (!times) return std::unexpected(times.error());
    return times->launch_ms.front();
  }
  if (ready_.session) return ready_.session->timed([&] { return ready_.launch(); });
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

Result<TimedBatch> LaunchTimer::timed_batch(int count) {
  std::vector<double> told;
  const int64_t start = measure::kernel_ns();
  if (ready_.candidate->is_remote()) {
    const candidate::RemoteLaunches launches = {
        .count = count, .each = !ready_.is_on_device, .only_timed = ready_.is_on_device};
    auto times = ready_.candidate->launch_batch(ready_.memory.tensors(), launches);
    if (!times) return std::unexpected(times.error());
    told = std::move(times->launch_ms);
  } else {
    for (int i = 0; i < count; ++i) {
      if (auto launched = ready_.launch(); !launched) return std::unexpected(launched.error());
    }
    if (ready_.session) {
      if (auto done = ready_.session->synchronize(); !done) return std::unexpected(done.error());
    }
  }
  return bench::timed_batch(static_cast<double>(measure::kernel_ns() - start) * 1e-6 / count, told);
}

Result<double> LaunchTimer::batch(int count) {
  auto timed = timed_batch(count);
  if (!timed) return std::unexpected(timed.error());
  return timed->outside_ms;
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

Result<double> LaunchTimer::span(int count) {
  if (is_remote_on_device()) {
    auto times =
        ready_.candidate->launch_batch(ready_.memory.tensors(), {.count = count, .each = false, .only_timed = true});
    if (!times) return std::unexpected(times.error());
    return times->launch_ms.front();
  }
  if (!ready_.session) return batch(count);
  auto ms = ready_.session->timed([&]() -> Status {
    for (int i = 0; i < count; ++i) {
      if (auto launched = ready_.launch(); !launched) return launched;
    }
    return {};
  });
  if (!ms) return ms;
  return *ms / count;
}

Result<double> LaunchTimer::span_in_graphs(int count) {
  if (is_remote_on_device()) {
    auto times = ready_.candidate->launch_batch(ready_.memory.tensors(),
                                                {.count = count, .each = false, .only_timed = true, .in_graphs = true});
    if (!times) return std::unexpected(times.error());
    return times->launch_ms.front();
  }
  if (ready_.session) {
    if (auto ms = ready_.session->timed_in_graphs([&] { return ready_.launch(); }, count)) return ms;
  }
  return span(count);
}

Result<ClockCheck> LaunchTimer::check_clock(double own_ms) {
  const ClockCheckOptions options{.is_remote = ready_.candidate->is_remote(),
                                  .is_on_device = ready_.is_on_device || ready_.session,
                                  .process = ready_.candidate->process_id().value_or(0)};
  return bench::check_clock(own_ms, options, [this](int count) { return timed_batch(count); });
}

}  // namespace tilewright::bench
