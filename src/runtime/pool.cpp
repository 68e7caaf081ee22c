#include "runtime/pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <new>

namespace tilewright::runtime {
namespace {

constexpr uint64_t kOpen = uint64_t{1} << 31;
constexpr uint64_t kInside = kOpen - 1;
constexpr int kSpins = 2000;
constexpr int64_t kBlockAfterNs = 40'000;  ///< unless the pool is told otherwise

uint32_t job_number(uint64_t state) { return static_cast<uint32_t>(state >> 32); }

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

int usable_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

/// A zero word that is zero again in a child of fork().
std::atomic<uint32_t>* map_wiped_word() {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  madvise(page, 4096, MADV_WIPEONFORK);
  return new (page) std::atomic<uint32_t>(0);
}

}  // namespace

ThreadPool::ThreadPool(int threads, int32_t spin_us)
    : size_(threads > 0 ? threads : usable_cpus()),
      block_after_ns_(spin_us == 0 ? kBlockAfterNs : std::max<int64_t>(0, int64_t{spin_us} * 1000)),
      life_(map_wiped_word()) {}

ThreadPool::~ThreadPool() {
  if (life_->load() == Running) {
    stop_ = true;
    wake_word_.fetch_add(1);
    futex(wake_word_, FUTEX_WAKE_PRIVATE, INT_MAX);
    for (const Worker& worker : workers_) pthread_join(worker.thread, nullptr);
  }
  munmap(life_, 4096);
}

tw_pool ThreadPool::interface() {
  return {this,
          [](void* self, tw_task task, void* context, int64_t count, int64_t grain) {
            static_cast<ThreadPool*>(self)->run(task, context, count, grain);
          },
          [](void* self) { return static_cast<ThreadPool*>(self)->size(); },
          [](void* self) { static_cast<ThreadPool*>(self)->idle(); }};
}

/// False while another thread is starting the workers.
bool ThreadPool::ensure_running() {
  uint32_t life = life_->load(std::memory_order_acquire);
  if (life == Running) return true;
  if (life != Stopped || !life_->compare_exchange_strong(life, Starting)) return false;
  start();
  life_->store(Running, std::memory_order_release);
  return true;
}

void ThreadPool::start() {
  workers_.clear();  // in a child of fork() these are threads of the parent
  busy_ = false;
  state_ = 0;
  sleepers_ = 0;
  stop_ = false;
  workers_.reserve(static_cast<size_t>(size_));  // addresses stay
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals go to the program's own threads
  for (int32_t index = 1; index < size_; ++index) {
    workers_.push_back({this, index, {}});
    if (pthread_create(&workers_.back().thread, nullptr, enter, &workers_.back()) != 0) {
      workers_.pop_back();  // fewer threads do the same work
      break;
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void* ThreadPool::enter(void* worker) {
  pthread_setname_np(pthread_self(), "tilewright");  // from inside: from outside it would write a file of /proc
  const auto* const self = static_cast<const Worker*>(worker);
  self->pool->work(self->index);
  return nullptr;
}

bool ThreadPool::has_news(uint32_t seen) const {
  const uint64_t state = state_.load(std::memory_order_acquire);
  return stop_.load(std::memory_order_relaxed) || ((state & kOpen) && job_number(state) != seen);
}

void ThreadPool::sleep(uint32_t seen) {
  const uint32_t word = wake_word_.load();
  sleepers_.fetch_add(1);
  if (!has_news(seen)) futex(wake_word_, FUTEX_WAIT_PRIVATE, word);
  sleepers_.fetch_sub(1);
}

/// Waits until a job with another number than `seen` is open (its state is returned) or the pool stops (false).
bool ThreadPool::wait_for_job(uint32_t seen, uint64_t& state) {
  int64_t idle_since = 0;
  for (int round = 0;; ++round) {
    if (has_news(seen)) {
      if (stop_.load(std::memory_order_relaxed)) return false;
      state = state_.load(std::memory_order_acquire);
      return true;
    }
    bool is_late = block_after_ns_ == 0 || park_.load(std::memory_order_relaxed);
    if (!is_late && (round % 64 == 63 || round > kSpins)) {
      const int64_t now = now_ns();
      if (idle_since == 0) idle_since = now;
      is_late = now - idle_since > block_after_ns_;
    }
    if (is_late) {
      sleep(seen);
      round = 0;
      idle_since = 0;
    } else if (round > kSpins) {
      sched_yield();
      round = kSpins;  // counts no further
    } else {
      pause();
    }
  }
}

void ThreadPool::work(int32_t index) {
  uint32_t seen = 0;
  uint64_t state = 0;
  while (wait_for_job(seen, state)) {
    if (!(state & kOpen) || job_number(state) == seen) continue;
    if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) continue;  // joins, if still open
    seen = job_number(state);
    take_ranges(index);
    state_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::take_ranges(int32_t index) {
  const int64_t count = count_, grain = grain_;
  for (;;) {
    const int64_t begin = next_.fetch_add(grain, std::memory_order_relaxed);
    if (begin >= count) return;
    task_(context_, begin, std::min(count, begin + grain), index);
  }
}

void ThreadPool::run(tw_task task, void* context, int64_t count, int64_t grain) {
  if (count <= 0) return;
  // Overflow of begin + grain is impossible: every thread claims at most one range past the end.
  grain = std::clamp<int64_t>(grain, 1, std::max<int64_t>(1, INT64_MAX / 4 / (size_ + 1)));
  if (size_ == 1 || count <= grain || count > INT64_MAX / 4 || !ensure_running() ||
      busy_.exchange(true, std::memory_order_acquire)) {
    for (int64_t begin = 0; begin < count; begin += std::min(grain, count - begin)) {
      task(context, begin, begin + std::min(grain, count - begin), 0);
    }
    return;
  }
  task_ = task;
  context_ = context;
  count_ = count;
  grain_ = grain;
  next_.store(0, std::memory_order_relaxed);
  park_.store(false, std::memory_order_relaxed);
  const uint64_t number = job_number(state_.load(std::memory_order_relaxed)) + uint64_t{1};
  state_.store((number == uint64_t{1} << 32 ? 1 : number) << 32 | kOpen, std::memory_order_release);
  wake_word_.fetch_add(1);
  if (sleepers_.load() > 0) {
    const int64_t ranges = (count - 1) / grain;  // beyond the caller's first
    futex(wake_word_, FUTEX_WAKE_PRIVATE, static_cast<uint32_t>(std::min<int64_t>(ranges, INT_MAX)));
  }
  take_ranges(0);
  state_.fetch_and(~kOpen, std::memory_order_relaxed);
  for (int round = 0; (state_.load(std::memory_order_acquire) & kInside) != 0; ++round) {
    if (round > kSpins) {
      sched_yield();
    } else {
      pause();
    }
  }
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::idle() { park_.store(true, std::memory_order_relaxed); }

}  // namespace tilewright::runtime
