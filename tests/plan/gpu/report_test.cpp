// assert and print in thread programs: what lies in the report buffer afterwards, and that the block ends.
#include <cstring>

#include "plan/gpu/run_on_interpreter.h"

namespace tilewright::plan::gpu {
namespace {

namespace report = runtime::report;

const target::Gpu kA100 = *target::parse_gpu("sm_80");

struct Reported {
  std::string problem;
  std::vector<char> bytes;
  GpuPlan plan;
  template <typename T>
  T at(int offset) const {
    T v;
    std::memcpy(&v, bytes.data() + offset, sizeof v);
    return v;
  }
};

/// Runs a kernel whose oracle fails, too, so that only the reports are looked at.
Reported reports_of(const char* text, std::vector<TestArray> arrays) {
  Reported out;
  std::vector<uint64_t> words;
  GpuCase c{text, "k", {}, std::move(arrays), {}};
  out.problem = run_case(c, kA100, {}, interp::Moment::Latest, 1, &out.plan, &words);
  out.bytes.resize(words.size() * 8);
  std::memcpy(out.bytes.data(), words.data(), out.bytes.size());
  return out;
}

TEST(Reports, AnAssertionThatHoldsLeavesNothing) {
  const Reported r = reports_of(R"(
kernel k(X: f32[N]) -> (Y: f32[N]) {
  grid (b: ceildiv(N, 32)) threads(32) {
    assert(N > 3, "N > 3")
    for i in parallel(32) {
      assert(X[b*32 + i] < 100, "small")
      Y[b*32 + i] = X[b*32 + i]
    }
  }
}
)",
                                {integers(DType::F32, {70}, 1), integers(DType::F32, {70}, 2)});
  EXPECT_EQ(r.problem, "");
  EXPECT_EQ(r.at<uint32_t>(report::kClaimed), 0u);
  ASSERT_EQ(r.plan.recipe.messages.size(), 2u);
  EXPECT_EQ(r.plan.recipe.messages[1].text, "small");
  EXPECT_EQ(r.plan.recipe.messages[1].location, "test.tile:6:7");
}

TEST(Reports, AFailedOneNamesBlockAndIndicesAndEndsItsBlock) {
  TestArray x = integers(DType::F32, {70}, 1);
  const float bad = 500;
  std::memcpy(x.data() + 4 * 45, &bad, 4);  // block 1, iteration 13
  const Reported r = reports_of(R"(
kernel k(X: f32[N]) -> (Y: f32[N]) {
  grid (b: ceildiv(N, 32)) threads(64) {
    for i in parallel(32) { assert(X[b*32 + i] < 100, "small") }
    for i in parallel(32) { Y[b*32 + i] = X[b*32 + i] }
  }
}
)",
                                {std::move(x), integers(DType::F32, {70}, 2)});
  EXPECT_EQ(r.at<uint32_t>(report::kClaimed), 1u);
  EXPECT_EQ(r.at<int32_t>(report::kRecord), 0);
  EXPECT_EQ(r.at<int32_t>(report::kRecord + 4), 1);
  EXPECT_EQ(r.at<int64_t>(report::kRecord + 8), 1);
  EXPECT_EQ(r.at<int64_t>(report::kRecord + 16), 13);
  EXPECT_EQ(r.problem, "") << "the block ends where the interpreter's does, the others go on";
}

TEST(Reports, PrintedValuesAreEntries) {
  const Reported r = reports_of(R"(
kernel k(X: f32[N]) -> (Y: f32[N]) {
  grid (b: ceildiv(N, 32)) threads(32) {
    print("block", b)
    for i in parallel(32) {
      if b*32 + i == 5 { print("x", i, X[b*32 + i], X[b*32 + i] < 0) }
      Y[b*32 + i] = X[b*32 + i]
    }
  }
}
)",
                                {integers(DType::F32, {30}, 1), integers(DType::F32, {30}, 2)});
  EXPECT_EQ(r.problem, "");
  ASSERT_EQ(r.at<uint32_t>(report::kPrintedWords), 6u);
  EXPECT_EQ(r.at<int64_t>(report::kPrints), 1 | int64_t{1} << 32);
  EXPECT_EQ(r.at<int64_t>(report::kPrints + 8), 0);
  EXPECT_EQ(r.at<int64_t>(report::kPrints + 16), 2 | int64_t{3} << 32);
  EXPECT_EQ(r.at<int64_t>(report::kPrints + 24), 5);
  const double x = r.at<double>(report::kPrints + 32);
  EXPECT_TRUE(x >= -3 && x <= 3 && x == std::floor(x)) << x;
  EXPECT_EQ(r.at<int64_t>(report::kPrints + 40), x < 0 ? 1 : 0);
}

}  // namespace
}  // namespace tilewright::plan::gpu
