// Rows over the blocks of a cluster: results, the choice, and the mistakes that must be found.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "plan/gpu/run_on_interpreter.h"

namespace tilewright::plan::gpu {
namespace {

target::Gpu hopper() { return *target::parse_gpu("sm_90a"); }

GpuCase rows(const std::string& file, const std::string& kernel, int64_t columns, DType dtype) {
  std::ifstream in(std::string(TW_SOURCE_DIR) + "/kernels/" + file);
  std::stringstream text;
  text << in.rdbuf();
  GpuCase c{text.str(), kernel, {}, {integers(dtype, {3, columns}, 1)}, {}, 2e-2};
  if (kernel != "softmax") c.arrays.push_back(integers(dtype, {columns}, 2)), c.scalars = {1e-5};
  if (kernel == "layernorm") c.arrays.push_back(integers(dtype, {columns}, 3));
  c.arrays.push_back(integers(dtype, {3, columns}, 4));
  c.configuration.params["T"] = dtype;
  c.configuration.params["lanes"] = int64_t{64};
  c.configuration.dims["C"] = columns;
  return c;
}

TEST(Cluster, RowKernelsOverTwoToEightBlocks) {
  for (const auto& [file, kernel] :
       {std::pair{"softmax.tile", "softmax"}, {"norm.tile", "rmsnorm"}, {"norm.tile", "layernorm"}})
    for (const int blocks : {2, 4, 8})
      for (const int64_t columns : {int64_t{4096}, int64_t{4000}}) {
        GpuPlan plan;
        EXPECT_EQ(run_case(rows(file, kernel, columns, DType::BF16), hopper(), {.cluster = blocks},
                           interp::Moment::Random, 7, &plan),
                  "")
            << kernel << " over " << blocks;
        ASSERT_EQ(plan.programs.size(), 1u);
        EXPECT_EQ(plan.programs[0].cluster, blocks) << kernel;
      }
}

TEST(Cluster, SeveralRowsABlockAndEveryReduction) {
  const char* text = R"(
kernel r(X: f32[R, C]) -> (Y: f32[R, C], S: f32[R])
{
  grid (b: ceildiv(R, 2)) threads(32) {
    x = fragment f32[2, C]
    lo = fragment f32[2];  hi = fragment f32[2];  total = fragment f32[2]
    copy(X[b*2 :+ 2, :], x)
    reduce_min(x, lo, dim = 1)
    reduce_max(x, hi, dim = 1)
    reduce_sum(x, total, dim = 1)
    x = x * hi[:, *] + lo[:, *]
    copy(x, Y[b*2 :+ 2, :])
    copy(total, S[b*2 :+ 2])
  }
}
)";
  GpuCase c{text,
            "r",
            {},
            {integers(DType::F32, {5, 520}, 1), integers(DType::F32, {5, 520}, 2), integers(DType::F32, {5}, 3)},
            {}};
  c.configuration.dims["C"] = 520;
  for (const uint64_t seed : {1, 2, 3})
    EXPECT_EQ(run_case(c, hopper(), {.cluster = 4}, interp::Moment::Random, seed), "") << seed;
}

TEST(Cluster, OnlyLongRowsAreShared) {
  const auto cluster_of = [](const GpuCase& c) { return plan(tile_of(c), hopper())->programs[0].cluster; };
  GpuCase c = rows("softmax.tile", "softmax", 65536, DType::BF16);
  c.configuration.params["lanes"] = int64_t{512};
  EXPECT_GT(cluster_of(c), 1);
  const auto planned = plan(tile_of(c), hopper());
  EXPECT_TRUE(std::ranges::any_of(planned->facts, [](const Fact& f) { return f.what == "cluster"; }));
  EXPECT_EQ(cluster_of(rows("softmax.tile", "softmax", 1024, DType::BF16)), 1);
  EXPECT_EQ(plan(tile_of(c), *target::parse_gpu("sm_80"))->programs[0].cluster, 1);
}

// Without the wait, parts are read before they are there; with half of the steps, half of the parts are missing.
TEST(Cluster, PlantedMistakesAreFound) {
  const GpuCase c = rows("norm.tile", "rmsnorm", 1024, DType::F32);
  EXPECT_NE(run_case(c, hopper(), {.plant = {"gpu_cluster", 1}, .cluster = 2}).find("no barrier"), std::string::npos);
  EXPECT_NE(run_case(c, hopper(), {.plant = {"gpu_cluster", 2}, .cluster = 2}), "");
}

}  // namespace
}  // namespace tilewright::plan::gpu
