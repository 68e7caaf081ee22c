#include "runtime/argument_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "runtime/matmul_recipe.h"

namespace tilewright::runtime {
namespace {

uint64_t seed() {
  const char* const text = std::getenv("TW_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 10) : std::random_device{}();
}

/// matmul with what else a recipe can hold: an optional tensor, there or not, its slot, misalignment, integer scalar,
/// two facts.
Recipe full_recipe(bool has_bias) {
  Recipe recipe = matmul_recipe(24);
  recipe.tensors.push_back({.name = "bias",
                            .dtype = TW_F16,
                            .is_absent = !has_bias,
                            .axes = {{.extent = slot(2), .text = "N"}},
                            .facts = {.alignment = 8},
                            .may_alias = {1}});
  recipe.tensors[1].facts.pitch_alignment = 16;
  recipe.tensors[2].facts.max_bytes = 4000;
  recipe.scalars.push_back({.name = "steps", .dtype = TW_I8});
  recipe.slots.push_back({.kind = SlotKind::Present, .argument = 3});
  recipe.slots.push_back({.kind = SlotKind::Misalignment, .argument = 2});
  recipe.slots.push_back({.kind = SlotKind::Scalar, .argument = 1, .name = "steps"});
  recipe.slots.push_back({.kind = SlotKind::Computed, .value = combine(ExpressionOp::Mul, {slot(10), slot(2)})});
  recipe.requirements.push_back({.holds = combine(ExpressionOp::Lt, {slot(0), constant(40)}), .text = "M < 40"});
  return recipe;
}

/// Arguments of full_recipe(), mostly valid.
struct Call {
  Call(std::mt19937_64& random, bool has_bias) : random_(random) {
    const int64_t m = draw(1, 45), k = draw(1, 9), n = 4 * draw(1, 9);
    extents = {{m, k}, {k, n}, {m, n}, {n}};
    for (auto& e : extents) strides.push_back(e.size() == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{e[1], 1});
    memory.resize(1 << 16);
    for (size_t i = 0; i < 4; ++i) {
      tensors.push_back({memory.data() + (i << 13), extents[i].data(), draw(0, 3) ? strides[i].data() : nullptr,
                         i == 3 ? TW_F16 : TW_F32, static_cast<int32_t>(extents[i].size()), 0, TW_CPU});
    }
    if (!has_bias) tensors[3] = {nullptr, nullptr, nullptr, 0, 0, TW_TENSOR_ABSENT, TW_CPU};
    scalars = {{TW_SCALAR_FLOAT, 0, {.floating = 1.5}}, {TW_SCALAR_INTEGER, 0, {.integer = draw(-128, 130)}}};
    for (int64_t bends = draw(0, 2); bends > 0; --bends) bend();
  }
  tw_arguments arguments() const { return {tensors.data(), tensors.size(), scalars.data(), scalars.size()}; }

  std::vector<std::vector<int64_t>> extents, strides;
  std::vector<char> memory;
  std::vector<tw_tensor> tensors;
  std::vector<tw_scalar> scalars;

 private:
  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  int64_t size() {
    constexpr int64_t kSizes[] = {-1, 0, 1, 2, 16, INT64_MAX, INT64_MIN, int64_t{1} << 28, int64_t{1} << 40};
    return kSizes[draw(0, std::size(kSizes) - 1)];
  }

  void bend() {
    const auto i = static_cast<size_t>(draw(0, 3));
    const auto axis = static_cast<size_t>(draw(0, static_cast<int64_t>(extents[i].size()) - 1));
    switch (draw(0, 9)) {
      case 0: extents[i][axis] = size(); break;
      case 1: strides[i][axis] = size(); break;
      case 2: tensors[i].data = memory.data() + draw(0, 1 << 15); break;
      case 3: tensors[i].data = nullptr; break;
      case 4: tensors[i].dtype = static_cast<int32_t>(draw(0, 14)); break;
      case 5: tensors[i].rank = static_cast<int32_t>(draw(0, 3)); break;
      case 6: tensors[i].flags = static_cast<uint32_t>(draw(0, 3)); break;
      case 7: tensors[i].device = TW_CUDA; break;
      case 8: scalars[static_cast<size_t>(draw(0, 1))].kind = static_cast<int32_t>(draw(0, 3)); break;
      case 9: scalars.resize(static_cast<size_t>(draw(0, 2))); break;
    }
    // A rank beyond the arrays is refused before they are read.
  }

  std::mt19937_64& random_;
};

class ArgumentTableTest : public testing::TestWithParam<bool> {};

TEST_P(ArgumentTableTest, AgreesWithBind) {
  const uint64_t first = seed();
  SCOPED_TRACE("TW_TEST_SEED=" + std::to_string(first));
  std::mt19937_64 random(first);
  const Recipe recipe = full_recipe(GetParam());
  ASSERT_TRUE(check(recipe).has_value());
  const ArgumentTable table(recipe);
  int quick = 0, slow = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Call call(random, GetParam());
    Binding by_table, by_bind;
    const bool is_quick = table.bind(call.arguments(), TW_CPU, by_table);
    const Status status = bind(recipe, call.arguments(), TW_CPU, by_bind);
    (!status ? refused : is_quick ? quick : slow) += 1;
    if (!is_quick) continue;
    ASSERT_TRUE(status.has_value()) << i << ": " << status.error().message;
    for (size_t slot = 0; slot < recipe.slots.size(); ++slot)
      ASSERT_EQ(by_table.slots[slot], by_bind.slots[slot]) << i << ", slot " << slot;
    for (size_t tensor = 0; tensor < recipe.tensors.size(); ++tensor) {
      ASSERT_EQ(by_table.pointers[tensor], by_bind.pointers[tensor]) << i;
      ASSERT_EQ(by_table.ranges[tensor].low, by_bind.ranges[tensor].low) << i;
      ASSERT_EQ(by_table.ranges[tensor].high, by_bind.ranges[tensor].high) << i;
    }
  }
  EXPECT_GT(quick, 1000);
  EXPECT_GT(refused, 1000);
  EXPECT_LT(slow, quick / 2) << "ordinary arguments are quick";
}

INSTANTIATE_TEST_SUITE_P(OptionalTensor, ArgumentTableTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "there" : "absent"; });

TEST(Formula, AgreesWithEvaluate) {
  const std::vector<int64_t> slots = {7, -9, 0, INT64_MAX, INT64_MIN};
  std::vector<Expression> expressions = {{}, constant(5), combine(ExpressionOp::Mul, {slot(0), slot(1)})};
  for (int64_t s = 0; s < 5; ++s) {
    expressions.push_back(slot(s));
    for (const int64_t divisor : {int64_t{1}, int64_t{16}, int64_t{48}, int64_t{-3}, int64_t{0}, INT64_MAX}) {
      for (const int64_t addend : {int64_t{0}, int64_t{15}, int64_t{-1}}) {
        const Expression sum = combine(ExpressionOp::Add, {slot(s), constant(addend)});
        expressions.push_back(combine(ExpressionOp::FloorDiv, {sum, constant(divisor)}));
      }
    }
  }
  for (const Expression& expression : expressions) {
    ASSERT_TRUE(check(expression, slots.size()).has_value());
    EXPECT_EQ(Formula(expression).value(slots), evaluate(expression, slots)) << to_string(expression);
  }
}

}  // namespace
}  // namespace tilewright::runtime
