// The stages of passes over rows and of element-wise kernels as text: what is read in place, which stores are left out,
// where masks are tested, which stores go past the caches.
#include <gtest/gtest.h>

#include <string_view>

#include "lang/elaborate.h"
#include "plan/cpu/golden.h"

namespace tilewright::plan::cpu {
namespace {

struct RowKernel {
  const char* name;
  const char* text;
};

const RowKernel kRowKernels[] = {
    // Read in place (x), dead stores (square), prefetch in the busiest pass, streaming stores.
    {"rms", R"(
kernel k(X: f32[R, C], W: f32[C]) -> (Y: f32[R, C]) {
  grid (r: R) threads(32) {
    x = fragment f32[1, C]; square = fragment f32[1, C]; w = fragment f32[C]; scale = fragment f32[1]
    copy(X[r :+ 1, :], x); copy(W[:], w)
    square = x * x
    reduce_sum(square, scale, dim = 1)
    scale = rsqrt(scale)
    x = x * scale[:, *] * w[*, :]
    copy(x, Y[r :+ 1, :])
  }
}
)"},
    // A guard that bounds the loop.
    {"guarded_add", R"(
kernel k(A: f32[N], B: f32[N]) -> (C: f32[N]) {
  grid (b: ceildiv(N, 64)) threads(32) {
    for i in parallel(64) { if b*64 + i < N { C[b*64 + i] = A[b*64 + i] + B[b*64 + i] } }
  }
}
)"},
    // A mask that is tested once per block, and a tile that is overwritten and read again.
    {"masked_exp", R"(
kernel k(X: f32[R, N]) -> (S: f32[R]) {
  grid (r: ceildiv(R, 4)) threads(32) {
    x = fragment f32[4, 32]; m = fragment f32[4]; l = fragment f32[4]
    clear(l)
    for t in serial(ceildiv(N, 32)) {
      copy(X[r*4 :+ 4, t*32 :+ 32], x)
      for i, j in parallel(4, 32) { x[i, j] = select(t*32 + j < N, x[i, j] * 2.0, -inf) }
      reduce_max(x, m, dim = 1)
      x = exp(x - m[:, *])
      reduce_sum(x, l, dim = 1, accumulate = true)
    }
    copy(l, S[r*4 :+ 4])
  }
}
)"},
    // Reductions along columns, scans and arg reductions.
    {"columns", R"(
kernel k(X: f32[M, N]) -> (S: f32[N], P: f32[M, N], I: i32[M], V: f32[M]) {
  grid (b: 1) threads(32) {
    x = fragment f32[8, 24]; s = fragment f32[24]; v = fragment f32[8]; n = fragment i32[8]
    copy(X[0 :+ 8, 0 :+ 24], x)
    reduce_sum(x, s, dim = 0)
    reduce_argmax(x, v, n, dim = 1)
    cumsum(x, dim = 1)
    copy(s, S[0 :+ 24]); copy(x, P[0 :+ 8, 0 :+ 24]); copy(v, V[0 :+ 8]); copy(n, I[0 :+ 8])
  }
}
)"},
};

class Rows : public testing::TestWithParam<RowKernel> {};

TEST_P(Rows, AreAsRecorded) {
  const auto program = lang::parse_source(GetParam().text, "rows.tile");
  ASSERT_TRUE(program) << program.error().message;
  lang::Configuration configuration;
  if (std::string_view(GetParam().name) == "rms") configuration.dims["C"] = 128;
  const auto kernel = lang::instantiate(*program, "k", configuration);
  ASSERT_TRUE(kernel) << program->render(kernel.error());
  const auto planned = plan(*kernel, *target::parse_cpu("x86-64-v3"), {.verify = true});
  ASSERT_TRUE(planned) << planned.error().message;
  compare_stages(GetParam().name, *planned);
}

INSTANTIATE_TEST_SUITE_P(All, Rows, testing::ValuesIn(kRowKernels), [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace tilewright::plan::cpu
