#include "target/cpu_dot.h"

#include <gtest/gtest.h>

#include <array>

namespace tilewright::target {
namespace {

TEST(CpuDot, EveryRowFillsA32BitLane) {
  for (const CpuDot& row : cpu_dots()) {
    EXPECT_EQ(bits(row.a) * row.terms, 32) << row.name;
    EXPECT_EQ(bits(row.b) * row.terms, 32) << row.name;
  }
}

TEST(CpuDot, TheBodyWrapsLikeTheInstruction) {
  EXPECT_EQ(dot_lane(std::array<int64_t, 4>{-128, 127, 1, 0}, std::array<int64_t, 4>{255, 255, 2, 9}, 10),
            -128 * 255 + 127 * 255 + 2 + 10);
  // Two products of -2^15 are 2^31, which is the least i32.
  EXPECT_EQ(dot_lane(std::array<int64_t, 2>{-32768, -32768}, std::array<int64_t, 2>{-32768, -32768}, 0), INT32_MIN);
}

TEST(CpuDot, LevelsWithoutByteProductsTakePairs) {
  for (const char* level : {"x86-64-v3", "x86-64-v4"}) {
    const CpuDot* row = choose_dot(*parse_cpu(level));
    ASSERT_TRUE(row) << level;
    EXPECT_EQ(row->name, "vpmaddwd") << level;
  }
  Cpu cpu = *parse_cpu("x86-64-v4");
  cpu.features.emplace_back("avx512vnni");
  EXPECT_EQ(choose_dot(cpu)->name, "vpdpbusd");
}

}  // namespace
}  // namespace tilewright::target
