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
  return text.str();
}

bool is_hopper(const GpuPlan& plan) { return plan.programs.size() == 1 && plan.programs[0].needs_sm90a; }

TEST(Hopper, MatmulAtEveryMomentAndRaggedExtents) {
  for (const auto moment : {interp::Moment::Earliest, interp::Moment::Latest, interp::Moment::Random}) {
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{256, 128, 192}, {200, 136, 72}, {8, 8, 8}}) {
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

}  // namespace
}  // namespace tilewright::plan::gpu
