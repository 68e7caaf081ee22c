// Layouts as drawn: every element has one place, matrix reads meet no bank twice.
#include <set>

#include "plan/gpu/roofline.h"
#include "plan/gpu/run_on_interpreter.h"

namespace tilewright::plan::gpu {
namespace {

TEST(SharedLayouts, SwizzledPanelsAreFreeOfBankConflicts) {
  for (const DType dtype : {DType::F16, DType::I8, DType::F32})
    for (const int span : {32, 64, 128})
      for (const int rows : {8, 64, 128, 256}) {
        const int element = bytes(dtype), columns = 256 / element;
        const BufferLayout b{.name = "t",
                             .dtype = dtype,
                             .shape = {rows, columns},
                             .shared = {.panel = span / element,
                                        .swizzle = span == 128  ? Swizzle::B128
                                                   : span == 64 ? Swizzle::B64
                                                                : Swizzle::B32}};
        EXPECT_EQ(bank_conflicts(b), 0) << name(dtype) << " " << span << " " << rows;
        std::set<int64_t> places;
        for (int r = 0; r < rows; ++r)
          for (int c = 0; c < columns; ++c) places.insert(b.byte_of(r, c));
        EXPECT_EQ(places.size(), static_cast<size_t>(rows * columns));
        EXPECT_LT(*places.rbegin(), rows * 256);
      }
  const BufferLayout plain{.name = "t", .dtype = DType::F16, .shape = {64, 64}, .shared = {.pitch = 64}};
  EXPECT_EQ(bank_conflicts(plain), 7) << "the count can see conflicts";
}

TEST(SharedLayouts, OperandsOfMatrixInstructionsAreFreeOfBankConflicts) {
  const char* text = R"(
kernel mm(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])
  param m = 32
  param n = 32
  param k = 16
{
  grid (b: 1) threads(64) {
    A_s = shared f16[m, k];  B_s = shared f16[k, n];  acc = fragment f32[m, n]
    copy(A[0 :+ m, 0 :+ k], A_s)
    copy(B[0 :+ k, 0 :+ n], B_s)
    gemm(A_s, B_s, acc, accumulate = false)
    copy(acc, C[0 :+ m, 0 :+ n])
  }
}
)";
  for (const int64_t m : {32, 64, 128})
    for (const int64_t n : {16, 32, 96, 128})
      for (const int64_t k : {16, 32, 48, 64, 128}) {
        GpuCase c{text, "mm", {}, {}, {}};
        c.configuration.params["m"] = m, c.configuration.params["n"] = n, c.configuration.params["k"] = k;
        const auto made = plan(tile_of(c), *target::parse_gpu("sm_80"));
        ASSERT_TRUE(made) << made.error().message;
        bool is_matrix = false;
        for (const Fact& f : made->facts) is_matrix |= f.what == "gemm" && f.why.find("mma.sync") != std::string::npos;
        if (!is_matrix) continue;
        for (const BufferLayout& b : made->layouts) EXPECT_EQ(bank_conflicts(b), 0) << to_text(b);
      }
}

TEST(Occupancy, IsWhatTheScarcestResourceLeaves) {
  const auto gpu = *target::parse_gpu("sm_90a");
  const auto expect = [&](int threads, int registers, int shared, int blocks, const char* limit) {
    const Occupancy o = occupancy(gpu, threads, registers, shared);
    EXPECT_EQ(o.blocks, blocks);
    EXPECT_STREQ(o.limit, limit);
  };
  expect(128, 32, 0, 16, "threads");
  expect(256, 168, 1 << 10, 1, "registers");
  expect(128, 64, 100 << 10, 2, "shared memory");
  expect(32, 16, 0, 32, "threads");
}

TEST(Drawings, TextAndSvg) {
  const BufferLayout b{.name = "acc", .dtype = DType::F32, .shape = {16, 8}, .registers = mma_accumulator(16, 8, 1, 1)};
  const std::string text = to_text(b);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "acc: f32[16, 8] in registers: [16, 8] over 32 threads, 4 registers; thread digits: 4:dim1x2 8:dim0x1");
  EXPECT_NE(text.find("\n     9    t4.r2    t4.r3    t5.r2"), std::string::npos) << text;
  const std::string svg = to_svg(b);
  EXPECT_NE(svg.find(">t31</text>"), std::string::npos);
  EXPECT_EQ(std::count(svg.begin(), svg.end(), '\n'), 8 + 16 * 9 + 4 + 1);
}

}  // namespace
}  // namespace tilewright::plan::gpu
