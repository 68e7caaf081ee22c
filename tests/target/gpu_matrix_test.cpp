#include "target/gpu_matrix.h"

#include <gtest/gtest.h>

#include <set>

namespace tilewright::target {
namespace {

TEST(MmaCells, CoverEveryElementOnce) {
  for (int i = 0; i < static_cast<int>(Mma::count); ++i) {
    const MmaRow& r = row(static_cast<Mma>(i));
    const int bits = 8 * ir::thread::bytes(r.a), per = bits >= 32 ? 1 : 32 / bits;
    std::set<std::pair<int, int>> a, b, c;
    for (int lane = 0; lane < 32; ++lane) {
      for (int k = 0; k < r.a_registers; ++k)
        for (int e = 0; e < per; ++e) a.insert({mma_a_cell(bits, lane, k, e).row, mma_a_cell(bits, lane, k, e).column});
      for (int k = 0; k < r.b_registers; ++k)
        for (int e = 0; e < per; ++e) b.insert({mma_b_cell(bits, lane, k, e).row, mma_b_cell(bits, lane, k, e).column});
      for (int k = 0; k < r.c_registers; ++k) c.insert({mma_c_cell(lane, k).row, mma_c_cell(lane, k).column});
    }
    EXPECT_EQ(a.size(), static_cast<size_t>(r.m * r.k)) << r.name;
    EXPECT_EQ(b.size(), static_cast<size_t>(r.k * r.n)) << r.name;
    EXPECT_EQ(c.size(), static_cast<size_t>(r.m * r.n)) << r.name;
    EXPECT_EQ(a.rbegin()->first, r.m - 1) << r.name;
    EXPECT_EQ(b.rbegin()->first, r.k - 1) << r.name;
  }
}

TEST(MatrixDescriptor, RoundTrips) {
  for (const Swizzle swizzle : {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128}) {
    const MatrixDescriptor d{0x12340, 1024, 8192, swizzle};
    const MatrixDescriptor back = decode(encode(d));
    EXPECT_EQ(back.address, d.address);
    EXPECT_EQ(back.leading, d.leading);
    EXPECT_EQ(back.stride, d.stride);
    EXPECT_EQ(back.swizzle, d.swizzle);
  }
}

// 8 rows of a swizzled tile read at one 16-byte column touch 8 different bank groups: no conflict.
TEST(Swizzle, OneColumnOfEightRowsTouchesDifferentBanks) {
  for (const auto& [swizzle, distinct] :
       std::vector<std::pair<Swizzle, int>>{{Swizzle::B128, 8}, {Swizzle::B64, 8}, {Swizzle::B32, 8}, {Swizzle::None, 1}}) {
    const auto pitch = swizzle == Swizzle::None ? 128u : static_cast<uint32_t>(swizzle_bytes(swizzle));
    std::set<uint32_t> groups;
    for (uint32_t r = 0; r < 8; ++r) groups.insert(swizzled(swizzle, r * pitch) / 16 % 8);
    EXPECT_EQ(groups.size(), static_cast<size_t>(distinct));
  }
}

}  // namespace
}  // namespace tilewright::target
