#include "target/cpu.h"

#include <gtest/gtest.h>

namespace tilewright::target {
namespace {

TEST(Cpu, LevelsHaveTheVectorsTheyPromise) {
  const auto v3 = parse_cpu("x86-64-v3"), v4 = parse_cpu("x86-64-v4");
  ASSERT_TRUE(v3 && v4);
  EXPECT_EQ(v3->lanes(DType::F32), 8);
  EXPECT_EQ(v3->vector_registers, 16);
  EXPECT_FALSE(v3->has_mask_registers);
  EXPECT_EQ(v4->lanes(DType::F32), 16);
  EXPECT_EQ(v4->vector_registers, 32);
  EXPECT_TRUE(v4->has_mask_registers && v4->has_fma);
}

TEST(Cpu, UnknownNamesAreNothing) {
  EXPECT_FALSE(parse_cpu("x86-64-v2"));
  EXPECT_FALSE(parse_cpu(""));
}

TEST(Cpu, TheHostHasCachesInOrder) {
  const Cpu cpu = host_cpu();
  EXPECT_LE(cpu.l1_bytes, cpu.l2_bytes);
  EXPECT_GE(cpu.cores, 1);
}

}  // namespace
}  // namespace tilewright::target
