#include "runtime/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace tilewright::runtime {
namespace {

/// Runs `body(begin, end, worker)` on the pool.
void run(ThreadPool& pool, int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int32_t)>& body) {
  pool.run(
      [](void* context, int64_t begin, int64_t end, int32_t worker) {
        (*static_cast<const std::function<void(int64_t, int64_t, int32_t)>*>(context))(begin, end, worker);
      },
      const_cast<void*>(static_cast<const void*>(&body)), count, grain);
}

std::vector<int> covered(ThreadPool& pool, int64_t count, int64_t grain) {
  std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
  run(pool, count, grain, [&](int64_t begin, int64_t end, int32_t worker) {
    EXPECT_GE(worker, 0);
    EXPECT_LT(worker, pool.size());
    EXPECT_LE(end - begin, grain);
    for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
  });
  return {hits.begin(), hits.end()};
}

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        EXPECT_EQ(covered(pool, count, grain), std::vector<int>(static_cast<size_t>(count), 1));
      }
    }
  }
}

TEST(ThreadPool, ManyShortRunsInARow) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum = 0;
  for (int round = 0; round < 20000; ++round) {
    run(pool, 8, 1, [&](int64_t begin, int64_t, int32_t) { sum += begin; });
  }
  EXPECT_EQ(sum, 28 * 20000);
}

TEST(ThreadPool, WorkersBlockWhenIdleAndComeBack) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(covered(pool, 100, 1), std::vector<int>(100, 1));
    pool.idle();
    for (int wait = 0; pool.sleeping_workers() < 2 && wait < 5000; ++wait) usleep(1000);
    EXPECT_EQ(pool.sleeping_workers(), 2);
  }
}

/// Workers that look for work for a minute are still awake after a run; workers that do not look at all are asleep
/// soon.
TEST(ThreadPool, LooksForWorkAsLongAsAsked) {
  ThreadPool patient(2, 60'000'000), hasty(2, -1);
  for (ThreadPool* pool : {&patient, &hasty}) EXPECT_EQ(covered(*pool, 100, 1), std::vector<int>(100, 1));
  for (int wait = 0; hasty.sleeping_workers() < 1 && wait < 5000; ++wait) usleep(1000);
  EXPECT_EQ(hasty.sleeping_workers(), 1);
  EXPECT_EQ(patient.sleeping_workers(), 0);
  patient.idle();
  for (int wait = 0; patient.sleeping_workers() < 1 && wait < 5000; ++wait) usleep(1000);
  EXPECT_EQ(patient.sleeping_workers(), 1);
  EXPECT_EQ(covered(hasty, 100, 1), std::vector<int>(100, 1));
}

TEST(ThreadPool, NestedAndConcurrentRunsFinish) {
  ThreadPool pool(3);
  std::atomic<int64_t> total = 0;
  const auto work = [&] {
    for (int round = 0; round < 200; ++round) {
      run(pool, 6, 1, [&](int64_t, int64_t, int32_t) { run(pool, 4, 1, [&](int64_t, int64_t, int32_t) { ++total; }); });
    }
  };
  std::thread a(work), b(work), c(work);
  a.join();
  b.join();
  c.join();
  EXPECT_EQ(total, 3 * 200 * 24);
}

TEST(ThreadPool, WorksInAChildAfterFork) {
  ThreadPool pool(4);
  EXPECT_EQ(covered(pool, 50, 1), std::vector<int>(50, 1));
  const pid_t child = fork();
  if (child == 0) {
    bool good = true;
    for (int round = 0; round < 100; ++round) good = good && covered(pool, 50, 1) == std::vector<int>(50, 1);
    std::atomic<int> threads_seen = 0;
    std::atomic<uint32_t> mask = 0;
    // A worker other than the caller must exist again: hold the first range until a second thread shows up.
    run(pool, 2, 1, [&](int64_t, int64_t, int32_t worker) {
      mask |= 1u << worker;
      ++threads_seen;
      for (int wait = 0; threads_seen < 2 && wait < 5000; ++wait) usleep(1000);
    });
    const bool two_workers = __builtin_popcount(mask.load()) == 2;
    _exit(good && two_workers ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(covered(pool, 50, 1), std::vector<int>(50, 1));
}

}  // namespace
}  // namespace tilewright::runtime
