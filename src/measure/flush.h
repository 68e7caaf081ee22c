// Takes data out of every cache before a warm sample, outside the timed region.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tilewright::measure {

class CacheFlush {
 public:
  /// Where the processor has no flush instruction, a buffer of `sweep_bytes` (twice the last-level cache) is swept
  /// instead.
  explicit CacheFlush(size_t sweep_bytes = 0);

  /// After this no byte of `memory` is in any cache of the machine (all processes: the caches are by physical address).
  void flush(std::span<const std::byte> memory);
  void finish();  ///< orders the flushes before what follows; the sweep happens here

  std::string_view method() const;  ///< "clflushopt", "clflush", "sweep": recorded with the sample

 private:
  std::vector<std::byte> sweep_;
  std::string_view method_;
};

}  // namespace tilewright::measure
