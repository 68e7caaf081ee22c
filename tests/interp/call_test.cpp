// Calls and operations the interpreter refuses, each with its exact text.
#include <gtest/gtest.h>

#include "interp/interpreter.h"
#include "test_kernels.h"

namespace tilewright::interp {
namespace {

TEST(Call, ShapesThatDoNotFit) {
  const ir::Kernel kernel = matmul_relu(16, 16, 16);
  std::vector<float> data(16);
  const TensorRef a{DType::F32, data.data(), {4, 4}, {}}, b{DType::F32, data.data(), {3, 4}, {}};
  const auto out = run(kernel, {.tensors = {a, b, a}});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, DiagnosticCode::E1212);
  EXPECT_EQ(out.error().message, "B has extent 3 in dimension 0, expected 4");
}

TEST(Call, ACopyThatOverlapsItself) {
  TestKernel k;
  ir::Value* a = k.tensor("A", DType::F32, {k.c(8)}, ir::Direction::InOut);
  k.b.grid({.extents = {k.c(1)}}, [&](const std::vector<ir::Value*>&) {
    k.line(4);
    k.b.copy(k.region(a, {{k.c(0), k.c(4)}}), k.region(a, {{k.c(2), k.c(4)}}));
  });
  std::vector<float> data(8);
  const auto out = run(k.kernel, {.tensors = {{DType::F32, data.data(), {8}, {}}}}, {.check = true});
  ASSERT_TRUE(out) << render(out.error());
  ASSERT_FALSE(out->findings.empty());
  EXPECT_EQ(out->findings[0].code, DiagnosticCode::E1206) << render(out->findings[0]);
  EXPECT_EQ(out->findings[0].location.line, 4);
}

TEST(Call, ParallelInsideParallel) {
  TestKernel k;
  ir::Value* a = k.tensor("A", DType::F32, {k.c(8)}, ir::Direction::InOut);
  k.b.grid({.extents = {k.c(1)}}, [&](const std::vector<ir::Value*>&) {
    k.b.parallel({k.c(2)}, [&](const std::vector<ir::Value*>&) {
      k.line(6);
      k.b.parallel({k.c(2)}, [&](const std::vector<ir::Value*>&) { k.b.load(a, {k.c(0)}); });
    });
  });
  std::vector<float> data(8);
  const auto out = run(k.kernel, {.tensors = {{DType::F32, data.data(), {8}, {}}}});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, DiagnosticCode::E1211);
  EXPECT_EQ(out.error().message, "a `parallel` inside another `parallel`");
  EXPECT_EQ(out.error().location.line, 6);
}

}  // namespace
}  // namespace tilewright::interp
