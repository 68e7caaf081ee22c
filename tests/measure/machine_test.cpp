#include "measure/machine.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "measure/clock.h"
#include "measure/flush.h"
#include "measure/memory.h"

namespace tilewright::measure {
namespace {

TEST(Clock, BothClocksRunForwardAndAgree) {
  const FastClock clock;
  const int64_t kernel_start = kernel_ns(), fast_start = clock.now_ns();
  spin_ns(20'000'000);
  const int64_t fast = clock.now_ns() - fast_start, kernel = kernel_ns() - kernel_start;
  EXPECT_GE(kernel, 20'000'000);
  EXPECT_NEAR(static_cast<double>(fast) / static_cast<double>(kernel), 1, 0.2);
  EXPECT_GE(clock.overhead_ns(), 0);
}

TEST(Machine, DeviceNameHasNothingATableForbids) {
  const std::string name = cpu_device_name(2);
  EXPECT_TRUE(name.starts_with("cpu:"));
  EXPECT_TRUE(name.ends_with(":2c"));
  EXPECT_EQ(name.find_first_of(", \"'()@"), std::string::npos) << name;
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_GT(last_level_cache_bytes(), 0);
}

TEST(Memory, TouchedPagesShowInThePeak) {
  reset_peak();
  const auto before = read_process_memory();
  ASSERT_TRUE(before);
  constexpr size_t kBytes = size_t{64} << 20;
  void* block = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kBytes);
  ::munmap(block, kBytes);
  const auto after = read_process_memory();
  EXPECT_NEAR(static_cast<double>(after->peak_resident - before->resident), static_cast<double>(kBytes), 8e6);
}

TEST(Flush, LeavesTheBytesAlone) {
  std::vector<std::byte> bytes(10'001, std::byte{7});
  CacheFlush flush;
  flush.flush(bytes);
  flush.finish();
  for (std::byte b : bytes) ASSERT_EQ(b, std::byte{7});
  EXPECT_FALSE(flush.method().empty());
}

}  // namespace
}  // namespace tilewright::measure
