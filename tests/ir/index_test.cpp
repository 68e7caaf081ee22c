#include "ir/index.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/builder.h"
#include "ir/printer.h"

namespace tilewright::ir {
namespace {

/// Random expressions: every simplification must keep the value (checked without overflow).
class RandomIndex {
 public:
  RandomIndex(Kernel& kernel, uint32_t seed) : kernel_(kernel), random_(seed) {
    for (int i = 0; i < 3; ++i)
      symbols_.push_back(kernel.new_value(Type::scalar(DType::I64), std::string(1, static_cast<char>('a' + i))));
  }
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  int64_t value(const Value* v) const { return values_[v->id]; }
  void draw_values() {
    for (int64_t& v : values_) v = pick(41) - 20;
  }
  /// Builds the canonical expression and its value by the definition, side by side.
  std::pair<Index, int64_t> make(int depth) {
    if (depth == 0 || pick(6) == 0) {
      if (pick(2)) {
        const int64_t c = pick(13) - 4;
        return {kernel_.indices().constant(c), c};
      }
      const Value* s = symbols_[static_cast<size_t>(pick(3))];
      return {kernel_.indices().symbol(s), value(s)};
    }
    const auto [x, vx] = make(depth - 1);
    const auto [y, vy] = make(depth - 1);
    switch (pick(12)) {
      case 0: return {x + y, vx + vy};
      case 1: return {x - y, vx - vy};
      case 2: return {x * y, vx * vy};
      case 3: return {floordiv(x, y), floor_div(vx, vy)};
      case 4: return {floormod(x, y), floor_mod(vx, vy)};
      case 5: return {min(x, y), std::min(vx, vy)};
      case 6: return {max(x, y), std::max(vx, vy)};
      case 7: return {select(less(x, y), x, y), vx < vy ? vx : vy};
      case 8: return {logical_and(x, y), vx && vy};
      case 9: return {logical_or(x, y), vx || vy};
      case 10: return {logical_not(less_equal(x, y)), !(vx <= vy)};
      default: {
        const int64_t c = pick(7) + 1;
        return {ceildiv(x, c), floor_div(vx + c - 1, c)};
      }
    }
  }

 private:
  Kernel& kernel_;
  std::mt19937 random_;
  std::vector<const Value*> symbols_;
  std::vector<int64_t> values_ = std::vector<int64_t>(3);
};

TEST(Index, SimplificationKeepsEveryValue) {
  const uint32_t seed = 20261130;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Kernel kernel;
  RandomIndex random(kernel, seed);
  for (int i = 0; i < 20000; ++i) {
    random.draw_values();
    const auto [x, expected] = random.make(3);
    const int64_t got = evaluate(x, [&](const Value* v) { return random.value(v); });
    ASSERT_EQ(got, expected) << to_string(x, [](const Value* v) { return v->name; });
  }
}

TEST(Index, EqualExpressionsAreOneNode) {
  Kernel kernel;
  Builder b(kernel);
  const Index i = b.symbol(kernel.new_value(Type::scalar(DType::I64), "i"));
  const Index j = b.symbol(kernel.new_value(Type::scalar(DType::I64), "j"));
  EXPECT_EQ(i * 4 + j + 3, (j + 1) + i * 2 + (i * 2 + 2));
  EXPECT_EQ(floordiv(i * 64 + j, 64), i + floordiv(j, 64));
  EXPECT_EQ(floormod(i * 64 + 3, 64), b.constant_index(3));
  EXPECT_EQ(less(i, i + 1), b.constant_index(1));
  EXPECT_EQ(ceildiv(i * 8, 8), i);
}

TEST(Kernel, CloneIsEqualAndIndependent) {
  Kernel kernel;
  kernel.name = "double";
  Builder b(kernel);
  Value* n = kernel.new_value(Type::scalar(DType::I64), "N");
  kernel.dimensions.push_back({"N", n, std::nullopt});
  Value* x = kernel.new_value(Type::buffer(MemorySpace::Global, DType::F32, {b.symbol(n)}), "X");
  kernel.tensors.push_back({.buffer = x, .direction = Direction::InOut});
  b.grid({.extents = {ceildiv(b.symbol(n), 64)}}, [&](const std::vector<Value*>& block) {
    b.parallel({b.constant_index(64)}, [&](const std::vector<Value*>& i) {
      const Index at = b.symbol(block[0]) * 64 + b.symbol(i[0]);
      b.store(x, {at}, b.binary(BinaryOp::Mul, b.load(x, {at}), b.real(DType::F32, 2)));
    });
  });
  Kernel copy = clone(kernel);
  EXPECT_TRUE(equal(kernel, copy));
  EXPECT_EQ(content_key(kernel), content_key(copy));
  EXPECT_EQ(to_text(kernel), to_text(copy));
  copy.body->ops[0]->as<GridAttributes>().threads = 32;
  EXPECT_FALSE(equal(kernel, copy));
}

}  // namespace
}  // namespace tilewright::ir
