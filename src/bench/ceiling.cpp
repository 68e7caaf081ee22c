#include "bench/ceiling.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstring>
#include <optional>
#include <thread>

#include "bench/multiply_add.h"
#include "measure/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewright::bench {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"none", "multiply-add", "copy"};

void copy_plain(uint64_t* to, const uint64_t* from, size_t count) {
  // Not memcpy: the C library switches to streaming stores by itself, at a size of its own choice.
  for (size_t i = 0; i < count; i += 8) {
    for (size_t k = 0; k < 8; ++k) to[i + k] = from[i + k];
    asm volatile("" ::: "memory");
  }
}

/// `to` is aligned to 16 bytes, `count` a multiple of 8.
void copy_streaming(uint64_t* to, const uint64_t* from, size_t count) {
#if defined(__x86_64__)
  for (size_t i = 0; i < count; i += 8) {
    for (size_t k = 0; k < 8; k += 2) {
      const __m128i pair = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + k));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + k), pair);
    }
  }
  _mm_sfence();
#else
  copy_plain(to, from, count);
#endif
}

}  // namespace

void keep_alive(double value) {
  volatile double sink = value;
  static_cast<void>(sink);
}

namespace {

/// Keeps this thread on the n-th of its processors for as long as it lives: two threads that wake one another share a
/// processor for longer than a probe takes.
class Pinned {
 public:
  explicit Pinned(int n) {
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &before_) || n-- != 0) continue;
      CPU_SET(cpu, &one);
      is_pinned_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
      break;
    }
  }
  ~Pinned() {
    if (is_pinned_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
  bool is_pinned_ = false;
};

}  // namespace

double parallel_ms(int threads, const std::function<void(int)>& body) {
  std::barrier start(threads);
  std::vector<int64_t> from(static_cast<size_t>(threads)), to(static_cast<size_t>(threads));
  const auto timed = [&](int t) {
    std::optional<Pinned> place;
    if (threads > 1) place.emplace(t);
    start.arrive_and_wait();
    from[static_cast<size_t>(t)] = measure::kernel_ns();
    body(t);
    to[static_cast<size_t>(t)] = measure::kernel_ns();
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(timed, t);
    timed(0);
  }
  return static_cast<double>(*std::max_element(to.begin(), to.end()) - *std::min_element(from.begin(), from.end())) *
         1e-6;
}

CeilingProbe::CeilingProbe(Kind kind, int threads, double bytes, bool is_flushed)
    : kind_(kind), threads_(threads), is_flushed_(is_flushed) {
  if (kind != Kind::Copy) return;
  const auto granule = static_cast<size_t>(8 * threads);
  const size_t count = std::max(static_cast<size_t>(bytes / 2) / sizeof(uint64_t) / granule, size_t{1}) * granule;
  from_.assign(count, 1);
  to_.assign(count, 2);
}

double CeilingProbe::copy_ms(bool streaming) {
  if (is_flushed_) {
    flush_.flush(std::as_bytes(std::span(from_)));
    flush_.flush(std::as_bytes(std::span(to_)));
    flush_.finish();
  }
  const size_t part = from_.size() / static_cast<size_t>(threads_);
  return parallel_ms(threads_, [&](int t) {
    const size_t begin = part * static_cast<size_t>(t);
    streaming ? copy_streaming(to_.data() + begin, from_.data() + begin, part)
              : copy_plain(to_.data() + begin, from_.data() + begin, part);
  });
}

double CeilingProbe::sample() {
  switch (kind_) {
    case Kind::None: return 0;
    case Kind::MultiplyAdd: {
      constexpr int64_t kRounds = 50'000;
      const MultiplyAdd loop = best_multiply_add();
      const double ms = parallel_ms(threads_, [&](int) { keep_alive(loop.run(kRounds)); });
      return loop.flops_per_round * kRounds * threads_ / (ms * 1e6);
    }
    case Kind::Copy: {
      const double ms = std::min(copy_ms(false), copy_ms(true));
      return 2.0 * static_cast<double>(from_.size() * sizeof(uint64_t)) / (ms * 1e6);
    }
  }
  return 0;
}

std::string_view name(CeilingProbe::Kind kind) { return kNames[static_cast<size_t>(kind)]; }

CeilingProbe::Kind parse_ceiling(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<CeilingProbe::Kind>(i);
  }
  return CeilingProbe::Kind::None;
}

}  // namespace tilewright::bench
