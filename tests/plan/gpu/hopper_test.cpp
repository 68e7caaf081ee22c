#include <fstream>
#include <sstream>

#include "plan/gpu/run_on_interpreter.h"

namespace tilewright::plan::gpu {
namespace {

target::Gpu small_hopper() {
  target::Gpu gpu = *target::parse_gpu("sm_90a");
  gpu.multiprocessors = 3;  // blocks take several tiles each
  return gpu;
}

std::string read(const std::string& name) {
  std::ifstream file(TW_SOURCE_DIR "/kernels/" + name);
  std::stringstream text;
  text << file.rdbuf();
  std::string out = text.str();
  // Text has no folder to import from; what the kernels under test use stands in their own file.
  if (const size_t at = out.find("import \"math.tile\""); at != std::string::npos) out.erase(at, 18);
  return out;
}

bool is_hopper(const GpuPlan& plan) { return plan.programs.size() == 1 && plan.programs[0].needs_sm90a; }

TEST(Hopper, MatmulAtEveryMomentAndRaggedExtents) {
  for (const auto moment : {interp::Moment::Earliest, interp::Moment::Latest, interp::Moment::Random}) {
    for (const auto& [m, n, k] :
         std::vector<std::array<int64_t, 3>>{{256, 128, 192}, {200, 136, 72}, {8, 8, 8}, {72, 136, 0}}) {
      GpuCase c{read("matmul_relu.tile"),
                "matmul_relu",
                {},
                {integers(DType::F16, {m, k}, 1), integers(DType::F16, {k, n}, 2), integers(DType::F16, {m, n}, 3)},
                {}};
      c.configuration.params["block_M"] = int64_t{128};
      c.configuration.params["block_N"] = int64_t{128};
      c.configuration.params["block_K"] = int64_t{64};
      GpuPlan plan;
      EXPECT_EQ(run_case(c, small_hopper(), {}, moment, 5, &plan), "") << m << " " << n << " " << k;
      EXPECT_TRUE(is_hopper(plan)) << (plan.facts.empty() ? "" : plan.facts[0].why);
    }
  }
}

// Coordinates that the storing thread works out are not those of the others: a copy behind the store works out its own.
TEST(Hopper, ACopyBehindATileTheCopyEngineStores) {
  const char* text = R"(
kernel k(A: bf16[M, K], B: bf16[K, N], X: f16[M, N]) -> (Y: f16[M, N], Z: i32[M, N])
{
  grid (bx: ceildiv(N, 128), by: ceildiv(M, 128)) threads(128) {
    x = fragment f16[128, 128]
    copy(X[by*128 :+ 128, bx*128 :+ 128], x)
    a = shared bf16[128, 64]
    b = shared bf16[64, 128]
    c = fragment f32[128, 128]
    clear(c)
    for k in pipelined(ceildiv(K, 64), 2) {
      copy(A[by*128 :+ 128, k*64 :+ 64], a)
      copy(B[k*64 :+ 64, bx*128 :+ 128], b)
      gemm(a, b, c)
    }
    z = fragment i32[128, 128]
    for i, j in parallel(128, 128) { z[i, j] = i32(c[i, j] + f32(x[i, j])) }
    copy(x, Y[by*128 :+ 128, bx*128 :+ 128])
    copy(z, Z[by*128 :+ 128, bx*128 :+ 128])
  }
}
)";
  const GpuCase c{
      text,
      "k",
      {},
      {integers(DType::BF16, {257, 136}, 1), integers(DType::BF16, {136, 256}, 2), integers(DType::F16, {257, 256}, 3),
       integers(DType::F16, {257, 256}, 4), integers(DType::I32, {257, 256}, 5)},
      {}};
  GpuPlan plan;
  EXPECT_EQ(run_case(c, small_hopper(), {}, interp::Moment::Latest, 1, &plan), "");
  EXPECT_TRUE(is_hopper(plan)) << (plan.facts.empty() ? "" : plan.facts[0].why);
}

TEST(Hopper, AttentionOfTheDesign) {
  for (const bool causal : {true, false}) {
    GpuCase c{read("attention.tile"), "attention", {}, {}, {0.125}, 2e-2};
    c.configuration.params["E"] = DType::BF16;
    c.configuration.params["causal"] = causal;
    c.configuration.params["block_M"] = int64_t{128};
    c.configuration.params["block_N"] = int64_t{64};
    c.configuration.dims["D"] = 64;
    c.arrays = {integers(DType::BF16, {1, 150, 2, 64}, 1), integers(DType::BF16, {1, 190, 1, 64}, 2),
                integers(DType::BF16, {1, 190, 1, 64}, 3), integers(DType::BF16, {1, 150, 2, 64}, 4)};
    GpuPlan plan;
    EXPECT_EQ(run_case(c, small_hopper(), {}, interp::Moment::Latest, 3, &plan), "") << causal;
    EXPECT_TRUE(is_hopper(plan)) << (plan.facts.empty() ? "" : plan.facts[0].why);
  }
}

struct AttentionCase {
  int head = 64, rows = 128, columns = 64;
  bool causal = true, keep_max = true;
  double scale = 0.125;
  int64_t queries = 150, keys = 190;
};

std::string run_attention(const AttentionCase& a, const Options& options, GpuPlan* plan,
                          interp::Moment moment = interp::Moment::Latest) {
  GpuCase c{read("attention.tile"), "attention", {}, {}, {a.scale}, 2e-2};
  c.configuration.params["E"] = DType::BF16;
  c.configuration.params["causal"] = a.causal;
  c.configuration.params["keep_max"] = a.keep_max;
  c.configuration.params["block_M"] = int64_t{a.rows};
  c.configuration.params["block_N"] = int64_t{a.columns};
  c.configuration.dims["D"] = a.head;
  c.arrays = {integers(DType::BF16, {1, a.queries, 2, a.head}, 1), integers(DType::BF16, {1, a.keys, 1, a.head}, 2),
              integers(DType::BF16, {1, a.keys, 1, a.head}, 3), integers(DType::BF16, {1, a.queries, 2, a.head}, 4)};
  return run_case(c, small_hopper(), options, moment, 3, plan);
}

bool has_fact(const GpuPlan& plan, const std::string& what) {
  return std::any_of(plan.facts.begin(), plan.facts.end(), [&](const Fact& f) { return f.what == what; });
}

TEST(Hopper, AttentionOfEveryHeadDimension) {
  for (const AttentionCase& a : std::vector<AttentionCase>{{.head = 64, .rows = 192, .queries = 250},
                                                           {.head = 96},
                                                           {.head = 192, .causal = false},
                                                           {.head = 256, .queries = 130, .keys = 70}}) {
    GpuPlan plan;
    EXPECT_EQ(run_attention(a, {}, &plan), "") << a.head;
    EXPECT_TRUE(is_hopper(plan)) << (plan.facts.empty() ? "" : plan.facts[0].why);
    EXPECT_TRUE(has_fact(plan, "loop"));  // the products overlap
    EXPECT_EQ(has_fact(plan, "blocks"), a.causal);
  }
}

// Nothing is read of tensors without elements, also where the copies around the loop are made.
TEST(Hopper, AttentionOverNoKeys) {
  GpuPlan plan;
  EXPECT_EQ(run_attention({.queries = 130, .keys = 0}, {}, &plan), "");
  EXPECT_TRUE(is_hopper(plan));
}

TEST(Hopper, AttentionAtEveryMoment) {
  for (const auto moment : {interp::Moment::Earliest, interp::Moment::Random}) {
    for (const bool overlap : {true, false}) {
      GpuPlan plan;
      EXPECT_EQ(run_attention({.keys = 260}, {.overlap_products = overlap}, &plan, moment), "")
          << overlap << " " << static_cast<int>(moment);
      EXPECT_EQ(has_fact(plan, "loop"), overlap);
    }
  }
}

// The scale is left to the maximum and the differences only where it is positive.
TEST(Hopper, AttentionWithAnyScale) {
  for (const double scale : {-0.25, 0.0, 3.0}) {
    for (const bool keep_max : {true, false}) {
      GpuPlan plan;
      EXPECT_EQ(run_attention({.keep_max = keep_max, .scale = scale, .queries = 70, .keys = 140}, {}, &plan), "")
          << scale << " " << keep_max;
    }
  }
}

TEST(Hopper, EightBitFloatsWithAScale) {
  GpuCase c{
      read("matmul_fp8.tile"),
      "matmul_fp8",
      {},
      {integers(DType::E4M3, {130, 160}, 1), integers(DType::E4M3, {72, 160}, 2), integers(DType::F32, {130, 72}, 3)},
      {0.5, 0.25}};
  c.configuration.params["T"] = DType::F32;
  c.configuration.params["block_N"] = int64_t{64};
  GpuPlan plan;
  EXPECT_EQ(run_case(c, small_hopper(), {}, interp::Moment::Latest, 5, &plan), "");
  EXPECT_TRUE(is_hopper(plan)) << (plan.facts.empty() ? "" : plan.facts[0].why);
}

TEST(Hopper, FewRowsWithTheWeightsAsTheTallOperand) {
  GpuCase c{read("matmul.tile"),
            "matmul_nt_skinny",
            {},
            {integers(DType::BF16, {13, 136}, 1), integers(DType::BF16, {136, 136}, 2),
             integers(DType::BF16, {13, 136}, 3, 1)},
            {}};
  c.configuration.params["T"] = DType::BF16;
  c.configuration.params["block_M"] = int64_t{16};
  c.configuration.params["block_K"] = int64_t{64};
  GpuPlan plan;
  EXPECT_EQ(run_case(c, small_hopper(), {}, interp::Moment::Latest, 5, &plan), "");
  EXPECT_TRUE(is_hopper(plan)) << (plan.facts.empty() ? "" : plan.facts[0].why);
}

}  // namespace
}  // namespace tilewright::plan::gpu
