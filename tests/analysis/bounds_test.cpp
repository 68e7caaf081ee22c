// Proofs must hold for every value of the symbols: random expressions are checked by enumeration.
#include "analysis/bounds.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/ir.h"

namespace tilewright::analysis {
namespace {

using ir::Index;
using ir::Value;

struct Space {
  ir::Kernel kernel;
  Value* size = kernel.new_value(ir::Type::scalar(DType::I64), "size");
  Value* block = kernel.new_value(ir::Type::scalar(DType::I64), "block");
  Value* i = kernel.new_value(ir::Type::scalar(DType::I64), "i");
  Bounds bounds;
  Index of(const Value* v) { return kernel.indices().symbol(v); }
  Index n(int64_t v) { return kernel.indices().constant(v); }
  /// block in [0, ceildiv(size, 8)), i in [0, 8).
  Space() {
    bounds.declare(size, n(0), n(int64_t{1} << 40));
    bounds.declare(block, n(0), ceildiv(of(size), 8) - 1);
    bounds.declare(i, n(0), n(7));
  }
};

TEST(Bounds, YoungestFactsComeFirst) {
  Space s;
  s.bounds.declare(s.i, s.n(0), min(s.n(8), s.of(s.size) - s.of(s.block) * 8) - 1);
  EXPECT_TRUE(s.bounds.is_never_less(s.of(s.size) - 1, s.of(s.block) * 8 + s.of(s.i))) << "a clipped loop stays inside";
}

TEST(Bounds, HeadsOfAGroup) {
  Space s;
  const Index heads = s.of(s.size), groups = s.of(s.block);
  s.bounds.declare(s.block, s.n(0), {});
  s.bounds.declare(s.i, s.n(0), heads - 1);
  const Index group = floordiv(s.of(s.i), floordiv(heads, groups));
  EXPECT_FALSE(s.bounds.is_never_less(groups - 1, group)) << "7 heads in 2 groups of 3: head 6 is in no group";
  s.bounds.declare_divides(groups, heads);
  EXPECT_TRUE(s.bounds.is_never_less(groups - 1, group));
  EXPECT_TRUE(s.bounds.is_never_negative(group));
}

TEST(Bounds, ProvesWhatBlocksNeed) {
  Space s;
  EXPECT_TRUE(s.bounds.is_never_negative(s.of(s.block) * 8 + s.of(s.i)));
  EXPECT_TRUE(s.bounds.is_never_less(s.of(s.size) - 1, s.of(s.block) * 8)) << "a block starts inside";
  EXPECT_FALSE(s.bounds.is_never_less(s.of(s.size) - 1, s.of(s.block) * 8 + s.of(s.i))) << "but may end outside";
  EXPECT_TRUE(s.bounds.is_never_less(ceildiv(s.of(s.size), 8) * 8, s.of(s.size)));
  EXPECT_TRUE(s.bounds.is_never_less(s.of(s.size), min(s.n(8), s.of(s.size) - s.of(s.block) * 8) + s.of(s.block) * 8));
}

TEST(Bounds, EveryProofHolds) {
  const uint32_t seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  int proofs = 0;
  for (int round = 0; round < 400; ++round) {
    Space s;
    const auto pick = [&](int n) { return static_cast<int64_t>(random() % static_cast<uint32_t>(n)); };
    const std::function<Index(int)> make = [&](int depth) -> Index {
      if (depth == 0)
        return pick(2) ? s.n(pick(20) - 6) : s.of(std::array{s.size, s.block, s.i}[static_cast<size_t>(pick(3))]);
      const Index x = make(depth - 1), y = make(depth - 1);
      switch (pick(7)) {
        case 0: return x + y;
        case 1: return x - y;
        case 2: return x * (pick(9) - 3);
        case 3: return floordiv(x, pick(9) + 1);
        case 4: return floormod(x, pick(9) + 1);
        case 5: return min(x, y);
        default: return max(x, y);
      }
    };
    const Index x = make(3);
    if (!s.bounds.is_never_negative(x)) continue;
    ++proofs;
    for (int64_t size = 0; size < 30; ++size) {
      for (int64_t block = 0; block < (size + 7) / 8; ++block) {
        for (int64_t i = 0; i < 8; ++i) {
          const int64_t v = evaluate(x, [&](const Value* symbol) {
            return symbol == s.size ? size : symbol == s.block ? block : i;
          });
          ASSERT_GE(v, 0) << "size " << size << " block " << block << " i " << i;
        }
      }
    }
  }
  EXPECT_GT(proofs, 20);
}

}  // namespace
}  // namespace tilewright::analysis
