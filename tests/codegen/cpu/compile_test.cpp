#include "codegen/cpu/compile.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace tilewright::codegen {
namespace {

using namespace ir;

/// y[i] = x[i] * 3 over blocks of 64 floats.
Kernel doubling() {
  Kernel kernel;
  kernel.name = "doubling";
  kernel.phase = Phase::Vector;
  Builder b(kernel);
  Value* n = kernel.new_value(Type::scalar(DType::I64), "n");
  kernel.slots.push_back(n);
  Op* func = b.op(OpKind::Func, {}, FuncAttributes{.symbol = "doubling", .blocks = {ceildiv(b.symbol(n), 64)}});
  b.region_of(func, {Type::scalar(DType::I64)}, [&](const std::vector<Value*>& block) {
    Value* x = b.argument(0);
    Value* y = b.argument(1);
    b.for_loop(b.constant_index(0), b.constant_index(64), b.constant_index(16), [&](const std::vector<Value*>& i) {
      const Index at = (b.symbol(block[0]) * 64 + b.symbol(i[0])) * 4;
      Value* mask = b.mask(b.symbol(n) - (b.symbol(block[0]) * 64 + b.symbol(i[0])), 16);
      Value* v = b.vload(x, {.storage = DType::F32, .bytes = at}, Type::scalar(DType::F32, 16), mask);
      b.vstore(y, {.storage = DType::F32, .bytes = at}, b.binary(BinaryOp::Mul, v, b.real(DType::F32, 3, 16)), mask);
    });
  });
  return kernel;
}

TEST(CompileCpu, SameInputGivesSameBytesOnEveryTarget) {
  const Kernel kernel = doubling();
  for (const CpuOptions& options : {CpuOptions{}, host_cpu_options()}) {
    const auto once = compile_cpu(kernel, options);
    const auto twice = compile_cpu(kernel, options);
    ASSERT_TRUE(once) << render(once.error());
    EXPECT_EQ(once->object, twice->object);
    EXPECT_TRUE(once->object.starts_with("\177ELF"));
  }
  const auto text = compile_cpu(kernel, {.want_text = true});
  EXPECT_NE(text->assembly.find("vmulps"), std::string::npos) << text->assembly;
  EXPECT_NE(text->llvm_ir.find("llvm.loop.unroll.disable"), std::string::npos);
}

TEST(CompileCpu, AnOperationOfAnotherPhaseIsOurBugAndSaysSo) {
  Kernel kernel = doubling();
  Builder b(kernel);
  b.set_region(kernel.body->ops[0]->regions[0]);
  b.gemm({});
  const auto result = compile_cpu(kernel, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, DiagnosticCode::E9001);
  EXPECT_NE(result.error().message.find("gemm"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::codegen
