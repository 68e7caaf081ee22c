#include "measure/flush.h"

#include "measure/machine.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tilewright::measure {
namespace {

constexpr size_t kLine = 64;

#if defined(__x86_64__)
bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
}
__attribute__((target("clflushopt"))) void flush_opt(const std::byte* at, const std::byte* end) {
  for (; at < end; at += kLine) _mm_clflushopt(const_cast<std::byte*>(at));
}
void flush_plain(const std::byte* at, const std::byte* end) {
  for (; at < end; at += kLine) _mm_clflush(at);
}
#endif

}  // namespace

CacheFlush::CacheFlush(size_t sweep_bytes) {
#if defined(__x86_64__)
  (void)sweep_bytes;
  method_ = has_clflushopt() ? "clflushopt" : "clflush";
#else
  method_ = "sweep";
  sweep_.resize(sweep_bytes > 0 ? sweep_bytes : 2 * static_cast<size_t>(last_level_cache_bytes()));
#endif
}

void CacheFlush::flush(std::span<const std::byte> memory) {
#if defined(__x86_64__)
  if (memory.empty()) return;
  const std::byte* end = memory.data() + memory.size();
  const std::byte* at = memory.data() - reinterpret_cast<size_t>(memory.data()) % kLine;
  method_ == "clflushopt" ? flush_opt(at, end) : flush_plain(at, end);
#else
  (void)memory;
#endif
}

void CacheFlush::finish() {
#if defined(__x86_64__)
  _mm_mfence();
#else
  for (size_t i = 0; i < sweep_.size(); i += kLine) sweep_[i] = static_cast<std::byte>(i);
#endif
}

std::string_view CacheFlush::method() const { return method_; }

}  // namespace tilewright::measure
