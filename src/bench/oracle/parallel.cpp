#include "bench/oracle/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tilewright::bench {

void for_each_range(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t ranges = (count + grain - 1) / grain;
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    for (int64_t r; (r = next.fetch_add(1, std::memory_order_relaxed)) < ranges;) {
      body(r * grain, std::min(count, (r + 1) * grain));
    }
  };
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> threads;
  for (int64_t t = 1; t < std::min(cores, ranges); ++t) threads.emplace_back(work);
  work();
}

}  // namespace tilewright::bench
