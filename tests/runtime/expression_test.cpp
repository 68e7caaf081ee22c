#include "runtime/expression.h"

#include <gtest/gtest.h>

#include <limits>

namespace tilewright::runtime {
namespace {

using enum ExpressionOp;

int64_t run(ExpressionOp op, int64_t a, int64_t b) { return evaluate(combine(op, {constant(a), constant(b)}), {}); }

TEST(Expression, DivisionIsFloorForAllSigns) {
  for (int64_t a = -9; a <= 9; ++a) {
    for (int64_t b = -4; b <= 4; ++b) {
      const int64_t quotient = run(FloorDiv, a, b);
      const int64_t remainder = run(FloorMod, a, b);
      if (b == 0) {
        EXPECT_EQ(quotient, 0);
        EXPECT_EQ(remainder, 0);
        continue;
      }
      EXPECT_EQ(quotient * b + remainder, a) << a << " " << b;
      EXPECT_TRUE(remainder == 0 || (remainder < 0) == (b < 0)) << a << " " << b;
      EXPECT_LT(std::abs(remainder), std::abs(b));
    }
  }
}

TEST(Expression, WrapsAtTheEnds) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(run(Add, kMax, 1), kMin);
  EXPECT_EQ(run(Sub, kMin, 1), kMax);
  EXPECT_EQ(run(Mul, kMax, 2), -2);
  EXPECT_EQ(run(FloorDiv, kMin, -1), kMin);
  EXPECT_EQ(run(FloorMod, kMin, -1), 0);
}

TEST(Expression, ComparesAndSelects) {
  EXPECT_EQ(run(Lt, 1, 2), 1);
  EXPECT_EQ(run(Ge, 1, 2), 0);
  EXPECT_EQ(run(And, 2, 4), 1);
  EXPECT_EQ(run(Or, 0, 0), 0);
  EXPECT_EQ(evaluate(combine(Not, {constant(3)}), {}), 0);
  const int64_t slots[] = {5, 9};
  const Expression select = combine(Select, {combine(Gt, {slot(0), constant(4)}), slot(1), constant(-1)});
  EXPECT_EQ(evaluate(select, slots), 9);
  EXPECT_EQ(to_string(select), "select((s0 > 4), s1, -1)");
  EXPECT_EQ(evaluate(ceil_div(slot(1), slot(0)), slots), 2);
}

TEST(Expression, CheckRefusesWhatCouldReadOutside) {
  EXPECT_TRUE(check(slot(1), 2).has_value());
  EXPECT_FALSE(check(slot(2), 2).has_value());
  EXPECT_FALSE(check(slot(-1), 2).has_value());
  EXPECT_FALSE(check(Expression{{{Add, 0}}}, 2).has_value());
  EXPECT_FALSE(check(Expression{{{Const, 0}, {Const, 0}}}, 2).has_value());
  EXPECT_FALSE(check(Expression{{{static_cast<ExpressionOp>(200), 0}}}, 2).has_value());
  Expression deep;
  for (int i = 0; i <= kMaxExpressionDepth; ++i) deep.code.push_back({Const, 1});
  for (int i = 0; i < kMaxExpressionDepth; ++i) deep.code.push_back({Add, 0});
  EXPECT_FALSE(check(deep, 0).has_value());
}

}  // namespace
}  // namespace tilewright::runtime
