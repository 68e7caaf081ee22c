#include "fuzz/generate.h"

#include <gtest/gtest.h>

#include "fuzz/judge.h"
#include "ir/printer.h"

namespace tilewright::fuzz {
namespace {

/// The interpreter itself with its blocks in another order and other batches.
class OtherOrder : public Subject {
 public:
  std::string name() const override { return "interpreter in another order"; }
  Status run(const ir::Kernel& kernel, const interp::Call& call, const Plant&) override {
    const auto out = interp::run(kernel, call, {.seed = 99, .batch = 37});
    if (!out) return std::unexpected(out.error());
    return {};
  }
};

TEST(Generate, CasesAreValidAndTheSameInAnyOrder) {
  OtherOrder subject;
  int counts[8] = {};
  int64_t elements = 0, tainted = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Choices choices(seed);
    const Case c = generate(choices);
    const Judgement j = judge(c, subject);
    ++counts[static_cast<int>(j.verdict)];
    elements += j.elements, tainted += j.tainted;
    ASSERT_FALSE(is_failure(j.verdict)) << "seed " << seed << ": " << name(j.verdict) << " " << j.detail << "\n"
                                        << ir::to_text(c.kernel);
  }
  EXPECT_GT(counts[static_cast<int>(Verdict::Match)], 280);
  EXPECT_LT(tainted * 10, elements);
}

TEST(Generate, ReplayedChoicesGiveTheSameCase) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Choices fresh(seed);
    const Case c = generate(fresh);
    Choices again(fresh.made());
    const Case d = generate(again);
    ASSERT_TRUE(ir::equal(c.kernel, d.kernel)) << "seed " << seed;
    ASSERT_EQ(c.dimensions, d.dimensions);
  }
}

}  // namespace
}  // namespace tilewright::fuzz
