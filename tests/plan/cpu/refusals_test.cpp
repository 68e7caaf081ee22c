// What the CPU planner refuses although the language accepts it, each with its exact text.
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "plan/cpu/plan.h"

namespace tilewright::plan::cpu {
namespace {

target::Cpu x86_64_v3() { return *target::parse_cpu("x86-64-v3"); }

/// A kernel of one grid that declares one tile.
ir::Kernel with_tile(std::vector<int64_t> shape) {
  ir::Kernel kernel;
  kernel.name = "k";
  ir::Builder b(kernel);
  b.grid({.extents = {b.constant_index(1)}}, [&](const std::vector<ir::Value*>&) {
    b.set_location({.file = std::make_shared<std::string>("k.tile"), .line = 3, .column = 5});
    ir::Value* tile = b.alloc(ir::MemorySpace::Shared, DType::F32, shape, "t");
    b.fill(b.whole(tile), b.real(DType::F32, 0));
    b.yield({});
  });
  return kernel;
}

std::string refusal(const ir::Kernel& kernel, const target::Cpu& cpu) {
  const auto planned = plan(kernel, cpu, {});
  return planned ? "accepted" : render(planned.error());
}

TEST(Refusals, AProcessorWithoutFma) {
  target::Cpu old = x86_64_v3();
  old.name = "x86-64-v2";
  old.has_fma = false;
  EXPECT_EQ(refusal(with_tile({4}), old),
            "error[E2023]: the target x86-64-v2 has no AVX2 and FMA\n  help: use a processor of x86-64-v3 or later\n");
}

TEST(Refusals, ATileWithoutElements) {
  EXPECT_EQ(refusal(with_tile({4, 0}), x86_64_v3()),
            "k.tile:3:5: error[E2021]: extent 0 of tile `t` is not positive\n");
}

}  // namespace
}  // namespace tilewright::plan::cpu
