// Blocks that walk over rows: results, the choice, and the mistake that must be found.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "plan/gpu/run_on_interpreter.h"

namespace tilewright::plan::gpu {
namespace {

target::Gpu hopper() { return *target::parse_gpu("sm_90a"); }

GpuCase rows(const std::string& file, const std::string& kernel, int64_t columns, DType dtype, int64_t block_rows) {
  std::ifstream in(std::string(TW_SOURCE_DIR) + "/kernels/" + file);
  std::stringstream text;
  text << in.rdbuf();
  GpuCase c{text.str(), kernel, {}, {integers(dtype, {11, columns}, 1)}, {}, 2e-2};
  if (kernel != "softmax") c.arrays.push_back(integers(dtype, {columns}, 2)), c.scalars = {1e-5};
  if (kernel == "layernorm") c.arrays.push_back(integers(dtype, {columns}, 3));
  c.arrays.push_back(integers(dtype, {11, columns}, 4));
  c.configuration.params["T"] = dtype;
  c.configuration.params["lanes"] = int64_t{64};
  c.configuration.params["recompute"] = true;
  c.configuration.params["block_R"] = block_rows;
  c.configuration.dims["C"] = columns;
  return c;
}

constexpr std::pair<const char*, const char*> kKernels[] = {
    {"softmax.tile", "softmax"}, {"norm.tile", "rmsnorm"}, {"norm.tile", "layernorm"}};

bool walks(const GpuPlan& plan) {
  return std::ranges::any_of(plan.facts, [](const Fact& f) { return f.what == "rows"; });
}

TEST(WalkRows, EveryRowKernel) {
  for (const auto& [file, kernel] : kKernels)
    for (const int64_t block_rows : {1, 2})
      for (const DType dtype : {DType::BF16, DType::F16}) {
        GpuPlan plan;
        EXPECT_EQ(run_case(rows(file, kernel, 4096, dtype, block_rows), hopper(), {.cluster = 1, .row_walkers = 2},
                           interp::Moment::Random, 7, &plan),
                  "")
            << kernel;
        EXPECT_TRUE(walks(plan)) << kernel;
      }
}

TEST(WalkRows, OnlyRowsThatArrivePacked) {
  EXPECT_FALSE(walks(*plan(tile_of(rows("norm.tile", "rmsnorm", 1024, DType::F32, 1)), hopper(), {.row_walkers = 2})));
  EXPECT_FALSE(walks(*plan(tile_of(rows("norm.tile", "rmsnorm", 1023, DType::BF16, 1)), hopper(), {.row_walkers = 2})));
  EXPECT_FALSE(walks(*plan(tile_of(rows("norm.tile", "rmsnorm", 1024, DType::BF16, 1)), hopper(), {.row_walkers = 0})));
}

TEST(WalkRows, ChosenWhereWeightsAreReadForEveryLongRow) {
  const auto walks_with = [](const char* kernel, int64_t columns, int64_t lanes) {
    GpuCase c = rows("norm.tile", kernel, columns, DType::BF16, 1);
    c.configuration.params["lanes"] = lanes;
    return walks(*plan(tile_of(c), hopper()));
  };
  EXPECT_TRUE(walks_with("layernorm", 16384, 512));
  EXPECT_FALSE(walks_with("layernorm", 4096, 512));
  EXPECT_FALSE(walks_with("rmsnorm", 16384, 512));
  EXPECT_FALSE(walks_with("layernorm", 65536, 1024));
}

TEST(WalkRows, ThePlantedMistakeIsFound) {
  EXPECT_NE(run_case(rows("norm.tile", "rmsnorm", 1024, DType::BF16, 1), hopper(),
                     {.plant = {"gpu_rows", 1}, .row_walkers = 2}),
            "");
}

}  // namespace
}  // namespace tilewright::plan::gpu
