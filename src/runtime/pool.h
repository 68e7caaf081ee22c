// The default thread pool of a CPU device, behind the three functions of tw_pool.
//
// Fork-join costs about half a microsecond while the workers are awake. An idle worker spins, then yields, and blocks
// within 50 µs or the time asked for. Threads start with the first run and are started anew in a child after fork(). A
// run that finds the pool busy (another thread's call, or a nested one) happens on its caller alone. Nothing is
// allocated after the threads exist.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <pthread.h>

#include "tilewright/tilewright.h"

namespace tilewright::runtime {

class ThreadPool {
 public:
  /// `threads` counts the caller; 0: as many as the process may use. `spin_us`: how long an idle worker looks for a job
  /// before it blocks; 0: the default, negative: not at all.
  explicit ThreadPool(int threads = 0, int32_t spin_us = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void run(tw_task task, void* context, int64_t count, int64_t grain);
  int32_t size() const { return size_; }
  void idle();
  int32_t sleeping_workers() const { return sleepers_.load(); }  ///< for tests

  /// This pool as the interface; valid while it lives.
  tw_pool interface();

 private:
  struct Worker {
    ThreadPool* pool;
    int32_t index;
    pthread_t thread;
  };
  /// On a page that fork() wipes, so that a child sees Stopped without asking the system on every run.
  enum Life : uint32_t { Stopped = 0, Starting = 1, Running = 2 };

  bool ensure_running();
  void start();
  static void* enter(void* worker);
  void work(int32_t index);
  bool wait_for_job(uint32_t seen, uint64_t& state);
  void sleep(uint32_t seen);
  bool has_news(uint32_t seen) const;
  void take_ranges(int32_t index);

  const int32_t size_;
  const int64_t block_after_ns_;
  std::atomic<uint32_t>* life_;
  std::vector<Worker> workers_;

  // The job: written by the owner of `busy_` before it opens `state_`.
  tw_task task_ = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0;
  int64_t grain_ = 1;

  alignas(64) std::atomic<bool> busy_ = false;
  alignas(64) std::atomic<uint64_t> state_ = 0;  ///< job number << 32 | open bit | workers inside
  alignas(64) std::atomic<int64_t> next_ = 0;
  alignas(64) std::atomic<uint32_t> wake_word_ = 0;
  std::atomic<int32_t> sleepers_ = 0;
  std::atomic<bool> park_ = false;
  std::atomic<bool> stop_ = false;
};

}  // namespace tilewright::runtime
