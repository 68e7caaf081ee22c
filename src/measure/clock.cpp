#include "measure/clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace tilewright::measure {
namespace {

#if defined(__x86_64__)
bool has_invariant_counter() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}
uint64_t read_counter() {
  unsigned processor = 0;
  const uint64_t ticks = __rdtscp(&processor);  // waits for earlier instructions
  _mm_lfence();
  return ticks;
}
#else
bool has_invariant_counter() { return false; }
uint64_t read_counter() { return 0; }
#endif

}  // namespace

int64_t kernel_ns() {
  timespec t{};
#if defined(__x86_64__)
  long result = SYS_clock_gettime;
  asm volatile("syscall" : "+a"(result) : "D"(static_cast<long>(CLOCK_MONOTONIC)), "S"(&t) : "rcx", "r11", "memory");
#else
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
#endif
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

FastClock::FastClock() {
  if (has_invariant_counter()) {
    first_ns_ = kernel_ns();
    first_tick_ = read_counter();
    spin_ns(10'000'000);
    const int64_t end_ns = kernel_ns();
    const uint64_t end_tick = read_counter();
    ns_per_tick_ = static_cast<double>(end_ns - first_ns_) / static_cast<double>(end_tick - first_tick_);
  }
  double least = 1e9;
  for (int i = 0; i < 100; ++i) {
    const int64_t a = now_ns();
    const int64_t b = now_ns();
    least = std::min(least, static_cast<double>(b - a));
  }
  overhead_ns_ = least;
}

int64_t FastClock::now_ns() const {
  if (ns_per_tick_ <= 0) return kernel_ns();
  return first_ns_ + static_cast<int64_t>(static_cast<double>(read_counter() - first_tick_) * ns_per_tick_);
}

void spin_ns(int64_t ns) {
  const int64_t end = kernel_ns() + ns;
  while (kernel_ns() < end) {
  }
}

}  // namespace tilewright::measure
