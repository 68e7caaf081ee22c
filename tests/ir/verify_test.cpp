// Each rule of the verifier, broken once in a printed kernel.
#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/printer.h"

namespace tilewright::ir {
namespace {

constexpr std::string_view kGood = R"(kernel k tile {
  dim %M
  dim %K
  scalar %scale: f32
  in %A: global f16[%M, %K]
  out %C: global f32[%M, %K]
  where (0 == (%M % 8))
  grid {extents = [%M], threads = 64, persistent = false, group = 0} (%b: i64) {
    %a = alloc {guarded = false} : shared f16[8, 4]
    %t = alloc {guarded = false} : shared f16[4, 8]
    %acc = alloc {guarded = false} : fragment f32[8, 8]
    %row = alloc {guarded = false} : fragment f32[8]
    %v = alloc {guarded = false} : var i32[]
    %zero = constant {real = 0x0p+0, integer = 0} : f32
    fill %zero {dst = %acc[0 :+ 8, 0 :+ 8]}
    pipelined {count = %K, stages = 2} (%k: i64) {
      copy {src = %A[(%b * 8) :+ 8, (%k * 4) :+ 4], dst = %a[0 :+ 8, 0 :+ 4]}
      gemm {a = %a[0 :+ 8, 0 :+ 4], b = %t[0 :+ 4, 0 :+ 8], c = %acc[0 :+ 8, 0 :+ 8], transpose_a = false, transpose_b = false, accumulate = true}
    }
    reduce {kind = sum, src = %acc[0 :+ 8, 0 :+ 8], dst = %row[0 :+ 8], dim = 1, accumulate = false}
    parallel {extents = [8, 8]} (%i: i64, %j: i64) {
      %x = load {buffer = %acc, indices = [%i, %j]} : f32
      %y = binary %x, %scale {op = mul} : f32
      %c = compare %y, %zero {op = gt} : bool
      %s = select %c, %y, %zero : f32
      store %s {buffer = %acc, indices = [%i, %j]}
    }
    %yes = index {index = (%b < %M)} : bool
    if %yes () {
      copy {src = %acc[0 :+ 8, 0 :+ 8], dst = %C[(%b * 8) :+ 8, 0 :+ 8]}
    } () {
    }
  }
}
)";

std::string verdict(std::string text) {
  const Result<Kernel> kernel = parse_ir(text);
  if (!kernel) return render(kernel.error(), text);
  const Status valid = verify(*kernel);
  return valid ? "valid" : valid.error().message;
}

std::string broken(std::string_view part, std::string_view replacement) {
  std::string text(kGood);
  const size_t at = text.find(part);
  if (at == std::string::npos) return "no such part";
  return verdict(text.replace(at, part.size(), replacement));
}

TEST(Verify, AcceptsAndReadsBack) {
  EXPECT_EQ(verdict(std::string(kGood)), "valid");
  const Result<Kernel> kernel = parse_ir(kGood);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(to_text(*kernel), kGood);
}

struct Case {
  std::string_view part;
  std::string_view replacement;
  std::string_view rule;
};

TEST(Verify, RefusesEachBrokenRule) {
  const Case cases[] = {
      {"kernel k tile", "kernel k vector", "the operation is legal in the kernel's phase"},
      {"(%k: i64)", "(%k: i64, %k2: i64)", "one argument per variable and carried value"},
      {"(%b: i64)", "(%b: i32)", "loop and block variables are i64"},
      {"shared f16[8, 4]", "shared f16[8, %K]", "extents of a tile are constants of 1 or more"},
      {"shared f16[8, 4]", "shared f16[0, 4]", "extents of a tile are constants of 1 or more"},
      {"var i32[]", "var i32[2]", "a var has no dimensions"},
      {"fill %zero", "fill %b", "operand 0 is f32, not i64"},
      {"dst = %acc[0 :+ 8, 0 :+ 8]}\n    pipelined", "dst = %acc[0 :+ 8]}\n    pipelined",
       "field dst has 1 slices for 2 dimensions"},
      {"src = %A[(%b * 8) :+ 8, (%k * 4) :+ 4]", "src = %A[(%b * 8) :+ 8, (%k * 4) :+ 8]",
       "extents of dimension 1 are equal"},
      {"src = %A[(%b * 8) :+ 8, (%k * 4) :+ 4]", "src = %A[(%b * 8) :+ 8, (%k * 4)]", "ranks 1 and 2 are equal"},
      {"b = %t[0 :+ 4, 0 :+ 8]", "b = %a[0 :+ 8, 0 :+ 4]", "gemm extents agree"},
      {"dim = 1", "dim = 2", "the reduced dimension exists"},
      {"dst = %row[0 :+ 8]", "dst = %row[0 :+ 4]", "the source's extents without the reduced dimension"},
      {"indices = [%i, %j]} : f32", "indices = [%i]} : f32", "1 indices for 2 dimensions"},
      {"indices = [%i, %j]} : f32", "indices = [%i, %scale]} : f32", "symbol %scale is an i64 scalar"},
      {"load {buffer = %acc, indices = [%i, %j]} : f32", "load {buffer = %acc, indices = [%i, %j]} : f64",
       "a load gives the buffer's compute type"},
      {"binary %x, %scale", "binary %x, %i", "both operands have one type"},
      {"{op = gt} : bool", "{op = gt} : f32", "the result is bool"},
      {"select %c, %y, %zero", "select %y, %y, %zero", "the condition is bool"},
      {"store %s", "store %c", "operand 0 is f32, not bool"},
      {"if %yes", "if %b", "operand 0 is bool, not i64"},
      {"index {index = (%b < %M)} : bool", "index {index = (%b < %M)} : f32", "an index is i64 or bool"},
      {"    } () {\n    }\n", "    }\n", "2 regions are needed"},
      {"  dim %K\n", "  dim %K\n  alias 0, 5\n", "an alias names two tensors"},
  };
  for (const Case& c : cases) EXPECT_THAT(broken(c.part, c.replacement), testing::HasSubstr(c.rule)) << c.part;
}

TEST(Verify, AnErrorIsOursAndSaysSo) {
  Kernel kernel;
  kernel.body->ops.push_back(kernel.new_op(OpKind::Fma, {}));
  const Status valid = verify(kernel);
  ASSERT_FALSE(valid);
  EXPECT_EQ(valid.error().code, DiagnosticCode::E9002);
}

TEST(ParseIr, HintsReadBack) {
  std::string text(kGood);
  const size_t at = text.find("accumulate = true}");
  ASSERT_NE(at, std::string::npos);
  text.insert(at + 18, " hints {instruction = mma, avoid = any, cache = default, vector = 0, layout = inferred}");
  const auto kernel = parse_ir(text, "k.ir");
  ASSERT_TRUE(kernel) << render(kernel.error());
  EXPECT_EQ(to_text(*kernel), text);
  EXPECT_FALSE(equal(*kernel, *parse_ir(kGood, "k.ir"))) << "a hint enters keys";
}

TEST(Verify, RefusesValuesOutOfScope) {
  Result<Kernel> kernel = parse_ir(kGood);
  ASSERT_TRUE(kernel);
  Op* grid = kernel->body->ops[0];
  std::swap(grid->regions[0]->ops[5], grid->regions[0]->ops[6]);  // the constant after its use
  EXPECT_THAT(verify(*kernel).error().message, testing::HasSubstr("is defined before it is used"));
  std::swap(grid->regions[0]->ops[5], grid->regions[0]->ops[6]);
  ASSERT_TRUE(verify(*kernel));
  kernel->body->ops.push_back(grid->regions[0]->ops[5]);
  grid->regions[0]->ops.erase(grid->regions[0]->ops.begin() + 5);
  EXPECT_FALSE(verify(*kernel));
}

TEST(ParseIr, SaysWhere) {
  EXPECT_EQ(verdict("kernel k tile {\n  dim %M\n  nonsense %M\n}\n"),
            "<ir>:3:11: error[E1101]: `nonsense` is not an operation\n    3 |   nonsense %M\n      |           ^\n");
  EXPECT_THAT(verdict("kernel k tile {\n  fill %M\n}\n"),
              testing::HasSubstr("<ir>:2:10: error[E1101]: %M is not defined"));
  EXPECT_THAT(verdict("kernel k tile {\n"), testing::HasSubstr("expected `}`"));
}

}  // namespace
}  // namespace tilewright::ir
