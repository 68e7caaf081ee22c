#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "plan/gpu/run_on_interpreter.h"

namespace tilewright::plan::gpu {
namespace {

const char* kMatmul = R"(
kernel mm(A: T[M, K], B: T[K, N]) -> (C: T[M, N])
  param T: dtype = f32 in {f16, bf16, f32}
  param block_M = 32
  param block_N = 32
  param block_K = 16
{
  grid (bx: ceildiv(N, block_N), by: ceildiv(M, block_M)) threads(128) {
    A_s = shared T[block_M, block_K]
    B_s = shared T[block_K, block_N]
    acc = fragment f32[block_M, block_N]
    clear(acc)
    for k in pipelined(ceildiv(K, block_K), 2) {
      copy(A[by*block_M :+ block_M, k*block_K :+ block_K], A_s)
      copy(B[k*block_K :+ block_K, bx*block_N :+ block_N], B_s)
      gemm(A_s, B_s, acc)
    }
    acc = max(acc, 0)
    copy(acc, C[by*block_M :+ block_M, bx*block_N :+ block_N])
  }
}
)";

GpuCase matmul(DType dtype, int64_t m, int64_t n, int64_t k) {
  GpuCase c{
      kMatmul, "mm", {}, {integers(dtype, {m, k}, 1), integers(dtype, {k, n}, 2), integers(dtype, {m, n}, 3)}, {}};
  c.configuration.params["T"] = dtype;
  return c;
}

std::string kernel_text(const std::string& name) {
  std::ifstream file(TW_SOURCE_DIR "/kernels/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const target::Gpu kA100 = *target::parse_gpu("sm_80");

TEST(Portable, MatmulOfEveryTypeAtOddExtents) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    EXPECT_EQ(run_case(matmul(dtype, 65, 50, 40), kA100), "") << name(dtype);
    EXPECT_EQ(run_case(matmul(dtype, 1, 1, 1), kA100), "") << name(dtype);
    EXPECT_EQ(run_case(matmul(dtype, 64, 32, 0), kA100), "") << name(dtype);
    EXPECT_EQ(run_case(matmul(dtype, 37, 70, 33), kA100, {.tensor_cores = false}), "") << name(dtype);
  }
}

TEST(Portable, RowsAndColumnsReduceAndBroadcast) {
  const char* text = R"(
kernel rows(X: f32[M, N]) -> (Y: f32[M, N], S: f32[M], C: f32[N])
  param block_M = 16
  param block_N = 48
{
  grid (b: 1) threads(64) {
    x = fragment f32[block_M, block_N]
    s = fragment f32[block_M]
    c = fragment f32[block_N]
    copy(X[0 :+ block_M, 0 :+ block_N], x)
    reduce_sum(x, s, dim = 1)
    reduce_max(x, c, dim = 0)
    for i, j in parallel(block_M, block_N) { x[i, j] = x[i, j] * 2 + s[i] }
    copy(x, Y[0 :+ block_M, 0 :+ block_N])
    copy(s, S[0 :+ block_M])
    copy(c, C[0 :+ block_N])
  }
}
)";
  GpuCase c{text,
            "rows",
            {},
            {integers(DType::F32, {16, 48}, 1), integers(DType::F32, {16, 48}, 2), integers(DType::F32, {16}, 3),
             integers(DType::F32, {48}, 3)},
            {}};
  EXPECT_EQ(run_case(c, kA100), "");
}

TEST(Portable, SoftmaxOfRows) {
  const char* text = R"(
kernel softmax(X: f32[M, N]) -> (Y: f32[M, N])
  param block_N = 64
{
  grid (b: M) threads(64) {
    x = fragment f32[1, block_N]
    m = fragment f32[1]
    s = fragment f32[1]
    copy(X[b :+ 1, 0 :+ block_N], x, oob = -inf)
    reduce_max(x, m, dim = 1)
    x = exp2((x - m[:, *]) * 1.442695)
    reduce_sum(x, s, dim = 1)
    x = x / s[:, *]
    copy(x, Y[b :+ 1, 0 :+ block_N])
  }
}
)";
  GpuCase c{text, "softmax", {}, {integers(DType::F32, {5, 50}, 1), integers(DType::F32, {5, 50}, 2)}, {}, 1e-5};
  EXPECT_EQ(run_case(c, kA100), "");
}

TEST(Portable, AttentionOfTheDesign) {
  for (const bool causal : {true, false}) {
    GpuCase c{kernel_text("attention.tile"), "attention", {}, {}, {0.125}, 2e-2};
    c.configuration.params["E"] = DType::BF16;
    c.configuration.params["causal"] = causal;
    c.configuration.params["block_M"] = int64_t{96};
    c.configuration.params["block_N"] = int64_t{64};
    c.configuration.dims["D"] = 32;
    c.arrays = {integers(DType::BF16, {1, 70, 2, 32}, 1), integers(DType::BF16, {1, 90, 1, 32}, 2),
                integers(DType::BF16, {1, 90, 1, 32}, 3), integers(DType::BF16, {1, 70, 2, 32}, 4)};
    EXPECT_EQ(run_case(c, kA100), "") << causal;
    EXPECT_EQ(run_case(c, kA100, {.tensor_cores = false}), "") << causal;
  }
}

// A tile may be indexed by any number inside `parallel`: permuted, gathered by data, outside the tensor and far
// outside.
TEST(Portable, ComputedIndices) {
  const char* text = R"(
kernel permute(X: f32[R, 64], P: I[R, 64]) -> (Y: f32[R, 64], Z: f32[R, 64])
  param I: dtype = i32 in {i32, i64}
{
  grid (r: R) threads(32) {
    x = shared f32[64]
    f = fragment f32[64]
    copy(X[r, :], x)
    copy(X[r, :], f)
    for i in parallel(64) {
      let p = i ^ 5
      Y[r, i] = x[p] + x[(p + 1) % 64] * 2 + f[i]
      Z[r, i] = load(X[r, P[r, i]], 7)
    }
  }
}
)";
  for (const DType index : {DType::I32, DType::I64}) {
    GpuCase c{text,
              "permute",
              {},
              {integers(DType::F32, {3, 64}, 1), integers(index, {3, 64}, 2, 80), integers(DType::F32, {3, 64}, 3),
               integers(DType::F32, {3, 64}, 4)},
              {}};
    const auto put = [&](int64_t at, int64_t value) {
      std::memcpy(c.arrays[1].data() + at * bytes(index), &value, static_cast<size_t>(bytes(index)));
    };
    put(0, std::numeric_limits<int32_t>::min()), put(1, std::numeric_limits<int32_t>::max());
    if (index == DType::I64) put(2, (int64_t{1} << 32) + 5), put(3, -(int64_t{1} << 40));
    c.configuration.params["I"] = index;
    EXPECT_EQ(run_case(c, kA100), "") << name(index);
    EXPECT_EQ(run_case(c, *target::parse_gpu("sm_90a")), "") << name(index);
  }
}

// Sums are kept in the destination's type, and the least integer is its own magnitude; where two reductions into one
// tile come from different layouts, the tile is converted.
TEST(Portable, ReductionsIntoATileOfAnotherLayout) {
  const char* text = R"(
kernel sums(A: i8[64, 64], B: i8[64, 32]) -> (S: i32[64], G: i8[64], W: i32[64])
{
  grid (b: 1) threads(128) {
    a = fragment i8[64, 64]
    c = fragment i8[64, 32]
    s = fragment i32[64]
    g = fragment i8[64]
    w = fragment i32[64]
    copy(A, a)
    copy(B, c)
    reduce_sum(a, s, dim = 1)
    reduce_sum(c, s, dim = 1, accumulate = true)
    reduce_absmax(a, g, dim = 1)
    reduce_absmax(c, g, dim = 1, accumulate = true)
    reduce_absmax(a, w, dim = 1)
    copy(s, S)
    copy(g, G)
    copy(w, W)
  }
}
)";
  for (const int range : {3, 128}) {
    const GpuCase c{text,
                    "sums",
                    {},
                    {integers(DType::I8, {64, 64}, 1, range), integers(DType::I8, {64, 32}, 2, range),
                     integers(DType::I32, {64}, 3), integers(DType::I8, {64}, 4), integers(DType::I32, {64}, 5)},
                    {}};
    GpuPlan plan;
    EXPECT_EQ(run_case(c, kA100, {}, interp::Moment::Latest, 3, &plan), "") << range;
    EXPECT_TRUE(std::ranges::any_of(plan.facts, [](const Fact& f) {
      return f.why == "layout differs from its user's: converted through shared memory";
    }));
  }
}

// From f64 to sixteen bits there is one rounding, not one to f32 and another.
TEST(Portable, NarrowFloatsAreRoundedOnce) {
  const char* text = R"(
kernel narrow(X: f64[64]) -> (Y: f16[64], Z: bf16[64])
{
  grid (b: 1) threads(32) {
    x = fragment f64[64]
    copy(X, x)
    for i in parallel(64) {
      Y[i] = f16(x[i])
      Z[i] = bf16(x[i])
    }
  }
}
)";
  GpuCase c{text,
            "narrow",
            {},
            {integers(DType::F64, {64}, 1), integers(DType::F16, {64}, 2), integers(DType::BF16, {64}, 3)},
            {}};
  // Just beside the middle of two neighbours of f16 (2^-11) and of bf16 (2^-8), closer than f32 can tell.
  const double beside = 0x1p-40, infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> hard = {1 + 0x1p-11 + beside,
                                    1 + 0x1p-11 - beside,
                                    1 + 0x3p-11 - beside,
                                    1 + 0x1p-8 + beside,
                                    1 + 0x1p-8 - beside,
                                    -(1 + 0x3p-8) + beside,
                                    65520 - beside,
                                    0x1p-25 + 0x1p-80,
                                    -0x1p-25,
                                    infinity,
                                    1e300,
                                    -0.0};
  for (size_t i = 0; i < hard.size(); ++i) std::memcpy(c.arrays[0].data() + i * 8, &hard[i], 8);
  EXPECT_EQ(run_case(c, kA100), "");
}

// Masks are left out where every condition holds, the inner ones included; and where several threads hold an element,
// one of them reads and writes the shared tile beside it.
TEST(Portable, ConditionsInsideConditionsAndReplicasBesideSharedTiles) {
  const char* text = R"(
kernel inner(X: f32[M, N], V: f32[N]) -> (Y: f32[M, N], S: f32[N])
{
  grid (by: ceildiv(M, 128)) threads(32) {
    x = fragment f32[128, 16]
    s = shared f32[16]
    total = fragment f32[16]
    copy(X[by*128 :+ 128, 0 :+ 16], x)
    copy(V[0 :+ 16], s)
    for i, j in parallel(128, 16) {
      if i < M - by*128 {
        if i % 2 == 0 { x[i, j] = x[i, j] + 10 } else { x[i, j] = x[i, j] - 10 }
      }
    }
    reduce_sum(x, total, dim = 0)
    for j in parallel(16) {
      total[j] = total[j] + s[j]
      s[j] = s[j] * 2 + total[j]
    }
    copy(x, Y[by*128 :+ 128, 0 :+ 16])
    if by == 0 { for j in parallel(16) { s[j] = s[j] + total[j] } }
    if by == 0 { copy(s, S[0 :+ 16]) }
  }
}
)";
  for (const int64_t m : {128, 383}) {
    const GpuCase c{text,
                    "inner",
                    {},
                    {integers(DType::F32, {m, 16}, 1), integers(DType::F32, {16}, 2), integers(DType::F32, {m, 16}, 3),
                     integers(DType::F32, {16}, 4)},
                    {}};
    for (const uint64_t seed : {1, 2, 3}) {
      EXPECT_EQ(run_case(c, kA100, {}, interp::Moment::Latest, seed), "") << m;
      EXPECT_EQ(run_case(c, *target::parse_gpu("sm_90a"), {}, interp::Moment::Latest, seed), "") << m;
    }
  }
}

/// How often `op` asks for `hint`.
int count_hints(const std::vector<ir::thread::Inst>& body, ir::thread::Op op, ir::thread::CacheHint hint) {
  int n = 0;
  for (const ir::thread::Inst& i : body) {
    n += i.op == op && i.attr[1] == static_cast<int>(ir::thread::Space::Global) && i.attr[2] == static_cast<int>(hint);
    n += count_hints(i.body, op, hint) + count_hints(i.orelse, op, hint);
  }
  return n;
}

TEST(Portable, HintsOfCachesAndLayoutsAreFollowedOrRefused) {
  const auto text = [](const std::string& layout, const std::string& cache) {
    return "kernel k(X: f32[M, 64]) -> (Y: f32[M, 64])\n{\n  grid (b: ceildiv(M, 16)) threads(64) {\n    s = shared "
           "f32[16, 64]" +
           layout + "\n    x = fragment f32[16, 64]\n    copy(X[b*16 :+ 16, :], x" + cache +
           ")\n    copy(x, s)\n    copy(s, x)\n    copy(x, Y[b*16 :+ 16, :]" + cache + ")\n  }\n}\n";
  };
  const auto planned = [&](const std::string& layout, const std::string& cache, GpuPlan& plan) {
    const GpuCase c{
        text(layout, cache), "k", {}, {integers(DType::F32, {40, 64}, 1), integers(DType::F32, {40, 64}, 2)}, {}};
    return run_case(c, kA100, {}, interp::Moment::Latest, 1, &plan);
  };
  using ir::thread::CacheHint;
  using ir::thread::Op;
  for (const auto& [cache, hint] : {std::pair{", cache = \"stream\"", CacheHint::Streaming},
                                    std::pair{", cache = \"keep\"", CacheHint::EvictLast}}) {
    GpuPlan plan;
    ASSERT_EQ(planned("", cache, plan), "");
    EXPECT_GT(count_hints(plan.programs[0].body, Op::Load, hint), 0) << cache;
    EXPECT_GT(count_hints(plan.programs[0].body, Op::Store, hint), 0) << cache;
  }
  GpuPlan rows, padded, none;
  ASSERT_EQ(planned(" layout(\"rows\")", "", rows), "");
  ASSERT_EQ(planned(" layout(\"padded\")", "", padded), "");
  EXPECT_EQ(rows.programs[0].shared_bytes, 16 * 64 * 4);
  EXPECT_EQ(padded.programs[0].shared_bytes, 16 * 68 * 4);
  EXPECT_EQ(planned(" layout(\"swizzled\")", "", none),
            "the hint layout = \"swizzled\" cannot be followed: only tiles that the copy engine fills for wgmma are "
            "swizzled, and this grid has the portable form");
}

// One barrier before an operation that reads one tile and writes another must not forget the read.
TEST(Portable, ReadsBesideAWriteThatWaitsArePending) {
  const char* text = R"(
kernel k(X: f32[8, 4]) -> (Y: f32[8, 4], Z: f32[8, 4])
{
  grid (b: 1) threads(64) {
    s = shared f32[8, 4]
    t = shared f32[8, 4]
    copy(X[:, :], s)
    copy(X[:, :], t)
    for i, j in parallel(8, 4) { t[i, j] = t[i, j] + s[7 - i, j] }
    for i, j in parallel(8, 4) { s[i, j] = 5 }
    copy(s, t)
    for i, j in parallel(8, 4) { s[i, j] = 6 }
    copy(t, Y[:, :])
    copy(s, Z[:, :])
  }
}
)";
  const GpuCase c{text,
                  "k",
                  {},
                  {integers(DType::F32, {8, 4}, 1), integers(DType::F32, {8, 4}, 2), integers(DType::F32, {8, 4}, 3)},
                  {}};
  for (const uint64_t seed : {1, 2, 3}) EXPECT_EQ(run_case(c, kA100, {}, interp::Moment::Latest, seed), "");
}

// Extents known only at run time: vectors where they divide, single elements where they do not.
TEST(Portable, MatrixVectorProductAtAnyExtent) {
  for (const int64_t k : {256, 250, 96, 8}) {
    GpuCase c{kernel_text("gemv.tile"),
              "gemv",
              {},
              {integers(DType::BF16, {7, k}, 1), integers(DType::BF16, {k}, 2), integers(DType::BF16, {7}, 3)},
              {}};
    c.configuration.params["T"] = DType::BF16;
    c.configuration.params["block_K"] = int64_t{64};
    c.configuration.params["lanes"] = int64_t{64};
    EXPECT_EQ(run_case(c, kA100), "") << k;
  }
}

}  // namespace
}  // namespace tilewright::plan::gpu
