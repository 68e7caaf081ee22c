// What C++ prints of an expression (tilewright/kernel_expression.h) parses back to the same tree, and numbers to the
// same bits.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "lang/parse.h"
#include "lang/recorded.h"
#include "lang/syntax_text.h"

namespace tilewright::kernel {
namespace {

using lang::Expr;
using lang::ExprKind;

/// Everything in parentheses.
std::string dump(const Expr& e) {
  std::string out = "(" + std::string(lang::spelling(e.op)) + e.text;
  for (const Expr* item : e.items) out += " " + dump(*item);
  return out + ")";
}

/// The tree of `text` as the value of an assignment.
std::pair<std::shared_ptr<const lang::File>, const Expr*> parsed(const std::string& text) {
  const auto file = lang::parse_file("kernel k() {\n  x = " + text + "\n}\n", "k.tile");
  if (!file) throw std::runtime_error(render(file.error(), text));
  return {*file, (*file)->stmts.front().value};
}

/// A random expression twice: by C++ operators, and with every operand in parentheses.
class Pair {
 public:
  explicit Pair(std::mt19937_64& random, int depth) { depth == 0 ? leaf(random) : branch(random, depth); }

  Value value = 0;
  std::string full;

 private:
  void branch(std::mt19937_64& random, int depth) {
    const Pair x(random, static_cast<int>(random() % depth)), y(random, static_cast<int>(random() % depth));
    const auto both = [&](Value v, const std::string& symbol) {
      value = std::move(v);
      full = "(" + x.full + ") " + symbol + " (" + y.full + ")";
    };
    switch (random() % 22) {
      case 0: return both(x.value + y.value, "+");
      case 1: return both(x.value - y.value, "-");
      case 2: return both(x.value * y.value, "*");
      case 3: return both(x.value / y.value, "/");
      case 4: return both(x.value % y.value, "%");
      case 5: return both(floordiv(x.value, y.value), "//");
      case 6: return both(x.value < y.value, "<");
      case 7: return both(x.value <= y.value, "<=");
      case 8: return both(x.value > y.value, ">");
      case 9: return both(x.value >= y.value, ">=");
      case 10: return both(x.value == y.value, "==");
      case 11: return both(x.value != y.value, "!=");
      case 12: return both(x.value && y.value, "and");
      case 13: return both(x.value || y.value, "or");
      case 14: return both(x.value & y.value, "&");
      case 15: return both(x.value | y.value, "|");
      case 16: return both(x.value ^ y.value, "^");
      case 17: return both(x.value << y.value, "<<");
      case 18: return both(x.value >> y.value, ">>");
      case 19: value = -x.value, full = "-(" + x.full + ")"; return;
      case 20: value = ~x.value, full = "~(" + x.full + ")"; return;
      default: value = !x.value, full = "not (" + x.full + ")"; return;
    }
  }

  void leaf(std::mt19937_64& random) {
    const Tile tile(Value("a", Binds::Primary));
    switch (random() % 5) {
      case 0: value = 7, full = "7"; break;
      case 1: value = -2.5, full = "-2.5"; break;
      case 2: value = min(tile(3), 1), full = "min(a[3], 1)"; break;
      case 3: value = tile[{at(Index(1) + 2, 4), whole(), repeat()}], full = "a[1 + 2 :+ 4, :, *]"; break;
      default: value = Value("b", Binds::Primary), full = "b"; break;
    }
  }
};

TEST(CppExpression, ParenthesesStandWhereTheGrammarNeedsThem) {
  const char* given = std::getenv("TW_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  SCOPED_TRACE("TW_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 3000; ++i) {
    const Pair pair(random, 5);
    const auto [file, tree] = parsed(pair.value.text());
    const auto [full_file, full_tree] = parsed(pair.full);
    ASSERT_EQ(dump(*tree), dump(*full_tree)) << pair.value.text() << "\nfor " << pair.full;
    // So does the compiler's own printer of expressions.
    const auto [again_file, again] = parsed(lang::to_text(*tree));
    ASSERT_EQ(dump(*again), dump(*tree)) << lang::to_text(*tree);
  }
}

double read_back(double v) {
  const auto [file, tree] = parsed(Value(v).text());
  if (tree->kind == ExprKind::Unary) return -tree->items[0]->real;
  return tree->real;
}

TEST(CppExpression, RealsReadBackExactly) {
  const char* given = std::getenv("TW_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  SCOPED_TRACE("TW_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<double> values = {
      0.0, -0.0,   1.0,  -1.0,        0.1, 1e-5, 1e22, 1e23, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
      1e6, 1e-300, 3e15, 123456789.0, 0.1f};
  while (values.size() < 3000) {
    const double v = std::bit_cast<double>(random());
    if (std::isfinite(v)) values.push_back(v);
  }
  for (const double v : values)
    ASSERT_EQ(std::bit_cast<uint64_t>(read_back(v)), std::bit_cast<uint64_t>(v)) << Value(v).text();
  EXPECT_EQ(Value(0.1).text(), "0.1");
  EXPECT_EQ(Value(3).text(), "3");
  EXPECT_EQ(Value(3.0).text(), "3.0");
  EXPECT_EQ(Value(-inf()).text(), "-inf");
  EXPECT_EQ(Value(-HUGE_VAL).text(), "-inf");
  EXPECT_EQ(Value(std::nan("")).text(), "nan");
}

TEST(CppExpression, IntegersAndTextsReadBack) {
  EXPECT_EQ(Value(INT64_MAX).text(), "9223372036854775807");
  EXPECT_EQ(Value(INT64_MIN).text(), "(-9223372036854775807 - 1)");
  EXPECT_EQ(Value(UINT64_MAX).text(), "0xffffffffffffffff");
  EXPECT_EQ(Value(true).text(), "true");
  EXPECT_EQ(Value(DType::E4M3).text(), "e4m3");
  const std::string words = "a \"quoted\"\\ line\n\tand more";
  const auto [file, tree] = parsed("f(" + Value(words).text() + ")");
  EXPECT_EQ(tree->items[0]->text, words);
}

}  // namespace
}  // namespace tilewright::kernel
