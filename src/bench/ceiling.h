// What this machine can do at this moment: a loop of known work run beside a sample of a kernel, so that a share of the
// peak stays honest while the machine changes its mind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "measure/flush.h"

namespace tilewright::bench {

/// body(thread) on all threads at once; ms from the first start to the last end as the threads themselves saw them (a
/// clock read by a waiting thread may be late by a whole time slice).
double parallel_ms(int threads, const std::function<void(int)>& body);

/// Keeps a result alive without a data race between threads.
void keep_alive(double value);

class CeilingProbe {
 public:
  enum class Kind : uint8_t {
    None,
    MultiplyAdd,  ///< GFLOP/s of fused multiply-adds in f32 from registers, half a millisecond
    Copy,         ///< GB/s, read plus written, of the better of a plain copy and one with streaming stores
  };
  /// `bytes`: read plus written by the kernel; the copy moves as many. Nothing is in a cache at its start when
  /// `is_flushed`.
  CeilingProbe(Kind kind, int threads, double bytes, bool is_flushed);

  /// One run; 0 for None.
  double sample();
  Kind kind() const { return kind_; }

 private:
  double copy_ms(bool streaming);

  Kind kind_;
  int threads_;
  bool is_flushed_;
  std::vector<uint64_t> from_, to_;
  measure::CacheFlush flush_;
};

std::string_view name(CeilingProbe::Kind kind);  ///< "none", "multiply-add", "copy"
CeilingProbe::Kind parse_ceiling(std::string_view text);

}  // namespace tilewright::bench
