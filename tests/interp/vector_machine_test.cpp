#include "interp/vector_machine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/builder.h"

namespace tilewright::interp {
namespace {

using ir::Index;
using ir::Type;
using ir::Value;

/// y[i] = a·x[i] + y[i] in vectors of 8 with a masked tail; slots: n, bits of a (unused here).
ir::Kernel axpy(bool masked) {
  ir::Kernel kernel;
  kernel.phase = ir::Phase::Vector;
  ir::Builder b(kernel);
  Value* n = kernel.new_value(Type::scalar(DType::I64), "n");
  kernel.slots = {n};
  ir::Op* func = b.op(ir::OpKind::Func, {}, ir::FuncAttributes{.symbol = "axpy", .blocks = {b.constant_index(1)}});
  b.region_of(func, {Type::scalar(DType::I64)}, [&](const std::vector<Value*>&) {
    Value *x = b.argument(0), *y = b.argument(1);
    b.for_loop(b.constant_index(0), b.symbol(n), b.constant_index(8), [&](const std::vector<Value*>& i) {
      const Index bytes = b.symbol(i[0]) * 4;
      const ir::MemoryAttributes at = {.storage = DType::F32, .bytes = bytes, .align = 4};
      Value* mask = masked ? b.mask(b.symbol(n) - b.symbol(i[0]), 8) : nullptr;
      Value* vx = b.vload(x, at, Type::scalar(DType::F32, 8), mask);
      Value* vy = b.vload(y, at, Type::scalar(DType::F32, 8), mask);
      b.vstore(y, at, b.fma(b.real(DType::F32, 2, 8), vx, vy), mask);
    });
  });
  return kernel;
}

Memory memory(std::vector<float>& v, const char* name) {
  return {reinterpret_cast<std::byte*>(v.data()), static_cast<int64_t>(v.size() * 4), name};
}

TEST(VectorMachine, MaskedTailTouchesNothingOutside) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, y(11, 1);
  const auto out = run_vector(axpy(true), {.slots = {11}, .pointers = {memory(x, "x"), memory(y, "y")}});
  ASSERT_TRUE(out) << render(out.error());
  for (size_t i = 0; i < 11; ++i) EXPECT_EQ(y[i], 2 * x[i] + 1);
}

TEST(VectorMachine, AnUnmaskedTailIsCaughtByName) {
  std::vector<float> x(11, 1), y(11, 1);
  const auto out = run_vector(axpy(false), {.slots = {11}, .pointers = {memory(x, "x"), memory(y, "y")}});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, DiagnosticCode::E1203);
  EXPECT_EQ(out.error().message, "`vload` of 32 bytes at x + 32 (of 44 bytes)");
}

TEST(VectorMachine, ShuffleReduceIotaScratchAndCarriedValues) {
  ir::Kernel kernel;
  kernel.phase = ir::Phase::Vector;
  ir::Builder b(kernel);
  ir::Op* func = b.op(ir::OpKind::Func, {},
                      ir::FuncAttributes{.symbol = "f", .blocks = {b.constant_index(1)}, .scratch_bytes = 64});
  b.region_of(func, {Type::scalar(DType::I64)}, [&](const std::vector<Value*>&) {
    Value* out = b.argument(0);
    Value* iota = b.op(ir::OpKind::Iota, {}, {}, {Type::scalar(DType::F32, 4)})->result();
    Value* back =
        b.op(ir::OpKind::Shuffle, {iota, iota}, ir::ShuffleAttributes{{3, 2, 5, 4}}, {Type::scalar(DType::F32, 4)})
            ->result();
    Value* scratch = b.scratch(b.constant_index(16));
    b.vstore(scratch, {.storage = DType::F16, .bytes = b.constant_index(0)}, back);
    Value* again = b.vload(scratch, {.storage = DType::F16, .bytes = b.constant_index(0)}, Type::scalar(DType::F32, 4));
    ir::Op* loop = b.for_loop(b.constant_index(0), b.constant_index(3), b.constant_index(1), {again},
                              [&](const std::vector<Value*>& v) {
                                b.yield({b.binary(ir::BinaryOp::Add, v[1], b.broadcast(b.real(DType::F32, 1), 4))});
                              });
    b.vstore(out, {.storage = DType::F32, .bytes = b.constant_index(0)}, loop->result());
    Value* sum = b.op(ir::OpKind::VectorReduce, {b.real(DType::F32, 1.5, 4)},
                      ir::ReduceLanesAttributes{ir::ReduceKind::Sum}, {Type::scalar(DType::F32)})
                     ->result();
    b.vstore(out, {.storage = DType::F32, .bytes = b.constant_index(16)}, sum);
  });
  std::vector<float> out(5);
  const auto outcome = run_vector(kernel, {.pointers = {memory(out, "out")}});
  ASSERT_TRUE(outcome) << render(outcome.error());
  EXPECT_EQ(out, (std::vector<float>{6, 5, 4, 3, 6}));
}

}  // namespace
}  // namespace tilewright::interp
