// The stages of products on the CPU as text: tile operations after the target-neutral passes, and the vector functions
// for a machine whose facts are constants. `plan_cpu_test --update-golden` writes the files anew.
#include <gtest/gtest.h>

#include <sstream>

#include "ir/printer.h"
#include "lang/elaborate.h"
#include "plan/cpu/golden.h"
#include "plan/cpu/plan.h"

namespace tilewright::plan::cpu {
namespace {

struct Golden {
  const char* name;
  const char* body;  ///< of a kernel over A, B and C with tiles of 4 x 16 x 8
  const char* types = "f32";
  const char* target = "x86-64-v3";
};

constexpr const char* kCopyOut = "copy(acc, C[by*4 :+ 4, bx*16 :+ 16])";

const Golden kGolden[] = {
    {"matmul", kCopyOut},
    {"matmul_wide", kCopyOut, "f32", "x86-64-v4"},
    {"matmul_i8", kCopyOut, "i8"},
    {"matmul_f16", kCopyOut, "f16"},
    {"matmul_relu", "acc = max(acc, 0); copy(acc, C[by*4 :+ 4, bx*16 :+ 16])"},
};

std::string source(const Golden& g) {
  const std::string type = g.types, sums = type == "i8" ? "i32" : "f32", out = type == "f16" ? "f16" : sums;
  std::ostringstream text;
  text << "kernel k(A: " << type << "[M, K], B: " << type << "[K, N]) -> (C: " << out << "[M, N])\n{\n"
       << "  grid (bx: ceildiv(N, 16), by: ceildiv(M, 4)) threads(32) {\n"
       << "    A_s = shared " << type << "[4, 8]; B_s = shared " << type << "[8, 16]\n"
       << "    acc = fragment " << sums << "[4, 16]; clear(acc)\n"
       << "    for k in pipelined(ceildiv(K, 8), 2) {\n"
       << "      copy(A[by*4 :+ 4, k*8 :+ 8], A_s); copy(B[k*8 :+ 8, bx*16 :+ 16], B_s); gemm(A_s, B_s, acc)\n    }\n  "
          "  "
       << g.body << "\n  }\n}\n";
  return text.str();
}

class Stages : public testing::TestWithParam<Golden> {};

TEST_P(Stages, AreAsRecorded) {
  const Golden& g = GetParam();
  const auto program = lang::parse_source(source(g), "golden.tile");
  ASSERT_TRUE(program);
  const auto kernel = lang::instantiate(*program, "k", {});
  ASSERT_TRUE(kernel) << program->render(kernel.error());
  const auto planned = plan(*kernel, *target::parse_cpu(g.target), {.verify = true});
  ASSERT_TRUE(planned) << planned.error().message;
  compare_stages(g.name, *planned);
}

INSTANTIATE_TEST_SUITE_P(All, Stages, testing::ValuesIn(kGolden), [](const auto& param) { return param.param.name; });

TEST(Plan, IsAPureFunctionOfKernelAndTarget) {
  const auto program = lang::parse_source(source(kGolden[0]), "golden.tile");
  ASSERT_TRUE(program);
  const auto kernel = lang::instantiate(*program, "k", {});
  ASSERT_TRUE(kernel);
  const auto first = plan(*kernel, *target::parse_cpu("x86-64-v4")),
             second = plan(*kernel, *target::parse_cpu("x86-64-v4"));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(to_text(first->vector), to_text(second->vector));
}

}  // namespace
}  // namespace tilewright::plan::cpu
