// The passes over tile kernels, on the language's first kernel: their effect, their order, what they must leave alone.
#include "transform/pass.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/printer.h"
#include "ir/verify.h"

namespace tilewright::transform {
namespace {

using ir::Index;
using ir::Value;
using ir::View;

struct Options {
  bool epilogue_in_loop = false;
  float first_value = 0;
};

ir::Kernel matmul(const Options& options = {}) {
  ir::Kernel kernel;
  kernel.name = "matmul";
  ir::Builder b(kernel);
  std::vector<Index> dims;
  for (const char* name : {"M", "N", "K"}) {
    Value* v = kernel.new_value(ir::Type::scalar(DType::I64), name);
    kernel.dimensions.push_back({name, v, {}});
    dims.push_back(b.symbol(v));
  }
  const auto tensor = [&](const char* name, Index x, Index y, ir::Direction direction) {
    Value* v = kernel.new_value(ir::Type::buffer(ir::MemorySpace::Global, DType::F32, {x, y}), name);
    kernel.tensors.push_back({v, direction, false, false, {}});
    return v;
  };
  Value* A = tensor("A", dims[0], dims[2], ir::Direction::In);
  Value* B = tensor("B", dims[2], dims[1], ir::Direction::In);
  Value* C = tensor("C", dims[0], dims[1], ir::Direction::Out);
  const auto tile = [&](Value* buffer, Index x, Index y) {
    return View{buffer, {{x, b.constant_index(32), true}, {y, b.constant_index(32), true}}};
  };
  b.grid({.extents = {ceildiv(dims[1], 32), ceildiv(dims[0], 32)}}, [&](const std::vector<Value*>& at) {
    const Index x = b.symbol(at[0]) * 32, y = b.symbol(at[1]) * 32;
    Value* a = b.alloc(ir::MemorySpace::Shared, DType::F32, {32, 32}, "a");
    Value* c = b.alloc(ir::MemorySpace::Shared, DType::F32, {32, 32}, "c");
    Value* acc = b.alloc(ir::MemorySpace::Fragment, DType::F32, {32, 32}, "acc");
    b.fill(b.whole(acc), b.real(DType::F32, options.first_value));
    b.pipelined(ceildiv(dims[2], 32), 2, [&](const std::vector<Value*>& k) {
      b.copy(tile(A, y, b.symbol(k[0]) * 32), b.whole(a));
      b.copy(tile(B, b.symbol(k[0]) * 32, x), b.whole(c));
      b.gemm({.a = b.whole(a), .b = b.whole(c), .c = b.whole(acc)});
      if (options.epilogue_in_loop) b.copy(b.whole(acc), tile(C, y, x));
      b.yield({});
    });
    b.copy(b.whole(acc), tile(C, y, x));
    b.yield({});
  });
  return kernel;
}

int count(const ir::Kernel& kernel, ir::OpKind kind) {
  int n = 0;
  for_each_op(*kernel.body, [&](const ir::Op& op) { n += op.kind == kind; });
  return n;
}

const ir::GemmAttributes& gemm_of(const ir::Kernel& kernel) {
  const ir::GemmAttributes* found = nullptr;
  for_each_op(*kernel.body, [&](const ir::Op& op) {
    if (op.kind == ir::OpKind::Gemm) found = &op.as<ir::GemmAttributes>();
  });
  return *found;
}

ir::Kernel run(ir::Kernel kernel, const PassOptions& options = {.verify = true}) {
  std::vector<Note> notes;
  const Status done = run_passes(kernel, options, notes);
  EXPECT_TRUE(done.has_value()) << (done ? "" : done.error().message);
  return kernel;
}

TEST(Passes, MatmulBecomesOneGemmOfGlobalTensors) {
  const ir::Kernel planned = run(matmul());
  EXPECT_EQ(count(planned, ir::OpKind::Pipelined), 0);
  EXPECT_EQ(count(planned, ir::OpKind::Copy), 1);
  EXPECT_EQ(count(planned, ir::OpKind::Fill), 0);
  EXPECT_EQ(count(planned, ir::OpKind::Alloc), 1) << "only the accumulator is left";
  EXPECT_FALSE(gemm_of(planned).accumulate);
  EXPECT_EQ(gemm_of(planned).a.buffer->name, "A");
  EXPECT_EQ(gemm_of(planned).b.buffer->name, "B");
}

TEST(Passes, RunningTwiceChangesNothing) {
  const ir::Kernel once = run(matmul());
  EXPECT_TRUE(equal(once, run(clone(once))));
}

TEST(Passes, JoinNeedsForwardedCopies) {
  EXPECT_EQ(count(run(matmul(), {.disabled = {"forward_copies"}, .verify = true}), ir::OpKind::Pipelined), 1);
}

TEST(Passes, ALoopThatDoesMoreIsKept) {
  const ir::Kernel planned = run(matmul({.epilogue_in_loop = true}));
  EXPECT_EQ(count(planned, ir::OpKind::Pipelined), 1);
  EXPECT_EQ(gemm_of(planned).a.buffer->name, "A") << "copies are still forwarded";
  EXPECT_TRUE(gemm_of(planned).accumulate);
}

TEST(Passes, AFirstValueOtherThanZeroIsKept) {
  const ir::Kernel planned = run(matmul({.first_value = 1}));
  EXPECT_EQ(count(planned, ir::OpKind::Fill), 1);
  EXPECT_TRUE(gemm_of(planned).accumulate);
}

TEST(Passes, PlantedMistakesChangeTheKernel) {
  const ir::Kernel right = run(matmul());
  for (const char* pass : {"forward_copies", "join_gemm_steps"}) {
    EXPECT_FALSE(equal(right, run(matmul(), {.plant = {pass, 1}}))) << pass;
  }
  EXPECT_FALSE(equal(run(matmul({.first_value = 1})), run(matmul({.first_value = 1}), {.plant = {"fold_clears", 1}})));
}

}  // namespace
}  // namespace tilewright::transform
