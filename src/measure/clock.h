// The harness's clocks. Two of independent origin, so that a candidate which bends one is found by the other.
#pragma once

#include <cstdint>

namespace tilewright::measure {

/// Monotonic nanoseconds by a system call made here, not through a library function a candidate could replace. ~100 ns
/// a call.
int64_t kernel_ns();

/// Monotonic nanoseconds, fast (~20 ns): the processor's time-stamp counter where it is invariant, else kernel_ns.
class FastClock {
 public:
  FastClock();  ///< calibrates against kernel_ns for 10 ms
  int64_t now_ns() const;
  double now_ms() const { return static_cast<double>(now_ns()) * 1e-6; }
  double overhead_ns() const { return overhead_ns_; }  ///< least time between two reads
  bool uses_counter() const { return ns_per_tick_ > 0; }

 private:
  double ns_per_tick_ = 0;
  uint64_t first_tick_ = 0;
  int64_t first_ns_ = 0;
  double overhead_ns_ = 0;
};

/// Spins until `ns` have passed by kernel_ns.
void spin_ns(int64_t ns);

}  // namespace tilewright::measure
