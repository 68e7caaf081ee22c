// What each construct of the language becomes, seen in the printed IR.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "lang/elaborate.h"

namespace tilewright::lang {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string ir_of(const std::string& text, const Configuration& configuration = {}) {
  const Result<Source> source = parse_source(text, "input.tile");
  if (!source) return render(source.error(), text);
  const Result<ir::Kernel> kernel = instantiate(*source, source->kernel_names()[0], configuration);
  if (!kernel) return source->render(kernel.error());
  if (const Status valid = ir::verify(*kernel); !valid) return render(valid.error());
  std::string printed = ir::to_text(*kernel);
  const Result<ir::Kernel> again = ir::parse_ir(printed);
  EXPECT_TRUE(again && ir::to_text(*again) == printed);
  return printed;
}

/// A kernel whose only grid has this body.
std::string body(const std::string& statements, const std::string& clauses = "") {
  return "kernel k(X: f32[N], I: i32[N]) -> (Y: f32[N])\n" + clauses + "{\n  grid (b: N) {\n" + statements +
         "\n  }\n}\n";
}

TEST(Construct, DimensionsBindInOrderAndExpressionsAreChecks) {
  const std::string text = ir_of("kernel k(W: u8[N, K // 2], A: f32[M, K]) -> (C: f32[M, N]) { }");
  EXPECT_THAT(text, HasSubstr("dim %N\n  dim %M\n  dim %K\n"));
  EXPECT_THAT(text, HasSubstr("in %W: global u8[%N, (%K // 2)]"));
}

TEST(Construct, ArgumentsOfEveryKind) {
  const std::string text = ir_of(
      "kernel k(inout A: f32[N], optional B: f32[N], guarded C: f32[N], workspace W: i32[4, N], scale: f32 = 0.5, n: "
      "i64)\n"
      "  -> (D: float16[N])\n  alias(A, C)\n{ }");
  EXPECT_THAT(text, HasSubstr("scalar %scale: f32 = 0x1p-1 0"));
  EXPECT_THAT(text, HasSubstr("scalar %n: i64\n"));
  EXPECT_THAT(text, HasSubstr("inout %A: global f32[%N]\n"));
  EXPECT_THAT(text, HasSubstr("in %C: global f32[%N] guarded"));
  EXPECT_THAT(text, HasSubstr("workspace %W: global i32[4, %N]"));
  EXPECT_THAT(text, HasSubstr("out %D: global f16[%N]"));
  EXPECT_THAT(text, HasSubstr("alias 0, 2"));
}

TEST(Construct, OptionalTensorsAreKnownAtCompileTime) {
  const std::string source =
      "kernel k(optional A: f32[N]) -> (C: f32[N]) {\n"
      "  grid (b: N) { if present(A) and b > 0 { C[b] = A[b] } else { C[b] = 1 } }\n}";
  EXPECT_THAT(ir_of(source), HasSubstr("load {buffer = %A"));
  const std::string absent = ir_of(source, {.absent = {"A"}});
  EXPECT_THAT(absent, HasSubstr("in %A: global f32[%N] optional"));
  EXPECT_THAT(absent, Not(HasSubstr("load")));
}

TEST(Construct, ParametersDefaultsRowsAndDomains) {
  const std::string source =
      body("    Y[b] = f", "  param T: dtype = select(wide, f64, f32)\n  param wide = {cpu: false, cuda: true}\n");
  EXPECT_THAT(ir_of(source), HasSubstr("`wide` is not defined"));
  const std::string rows =
      body("    let v = block\n    Y[b] = 1.0 * v",
           "  param block = {cpu: 8, cuda: 16} in {2, 4, 8, 16}\n  param twice = 2*block\n"
           "  config cpu when N <= 4 { block = 2 }\n  config when N <= 9 and N > 4 { block = 4 }\n");
  const auto chosen = [&](const Configuration& c) { return ir_of(rows, c); };
  EXPECT_THAT(chosen({}), HasSubstr("real = 0x1p+3"));
  EXPECT_THAT(chosen({.target = Target::Cuda}), HasSubstr("real = 0x1p+4"));
  EXPECT_THAT(chosen({.dims = {{"N", 3}}}), HasSubstr("real = 0x1p+1"));
  EXPECT_THAT(chosen({.target = Target::Cuda, .dims = {{"N", 3}}}), HasSubstr("real = 0x1p+4"));
  EXPECT_THAT(chosen({.target = Target::Cuda, .dims = {{"N", 7}}}), HasSubstr("real = 0x1p+2"));
  EXPECT_THAT(chosen({.params = {{"block", int64_t{16}}}, .dims = {{"N", 3}}}), HasSubstr("real = 0x1p+4"));
  EXPECT_THAT(chosen({.params = {{"block", int64_t{3}}}}),
              HasSubstr("error[E2002]: block = 3 is not among the values"));
  EXPECT_THAT(chosen({.params = {{"blokc", int64_t{3}}}}), HasSubstr("did you mean `block`?"));
}

TEST(Construct, WhereOverDimensionsIsARequirement) {
  const std::string source = body("    Y[b] = 0", "  where N % 4 == 0, N > 2\n");
  EXPECT_THAT(ir_of(source), HasSubstr("where (0 == (%N % 4))\n  where (2 < %N)"));
  EXPECT_THAT(ir_of(source, {.dims = {{"N", 6}}, .specialise = true}),
              HasSubstr("error[E2001]: the kernel requires N % 4 == 0; here N = 6"));
}

TEST(Construct, ADimensionThatShapesATileBecomesConstant) {
  const std::string source = body("    let half = N // 2\n    x = fragment f32[half]\n    copy(X[0 :+ half], x)");
  EXPECT_THAT(ir_of(source, {.dims = {{"N", 10}}}), HasSubstr("dim %N = 10"));
  EXPECT_THAT(ir_of(source, {.dims = {{"N", 10}}}), HasSubstr("fragment f32[5]"));
  EXPECT_THAT(ir_of(source), HasSubstr("error[E1060]"));
}

TEST(Construct, RegionsDropKeepAndBroadcast) {
  const std::string text = ir_of(
      "kernel k(X: f32[A, B, C]) -> (Y: f32[A, C]) {\n  grid (a: A) {\n    x = fragment f32[4, 8]\n    m = fragment "
      "f32[8]\n"
      "    copy(X[a, 2 :+ 4, 8 :+ 8], x)\n    copy(X[a, 0, 0 :+ 8], m)\n    x = x + m[*, :]\n    x[0, :] = m\n    x[1 "
      ":+ 2, 3] = 1\n  }\n}");
  EXPECT_THAT(text, HasSubstr("copy {src = %X[%a, 2 :+ 4, 8 :+ 8], dst = %x[0 :+ 4, 0 :+ 8]}"));
  EXPECT_THAT(text, HasSubstr("copy {src = %X[%a, 0, 0 :+ 8], dst = %m[0 :+ 8]}"));
  EXPECT_THAT(text, HasSubstr("parallel {extents = [4, 8]}"));
  EXPECT_THAT(text, HasSubstr("store %14 {buffer = %x, indices = [0, "));
  EXPECT_THAT(text, HasSubstr("parallel {extents = [2]}"));
}

TEST(Construct, ViewsAreNamedByLetAndPassedToFns) {
  const std::string text = ir_of(
      "fn scale_rows(t, by) { t = t * by[:, *] }\nfn last(t) = t[3]\n"
      "kernel k(X: f32[A, B]) -> (Y: f32[A]) {\n  grid (a: A) {\n    x = fragment f32[4, 8]\n    m = fragment f32[4]\n"
      "    let row = X[a, :]\n    copy(row[0 :+ 4], m)\n    scale_rows(x, m)\n    Y[a] = last(m)\n  }\n}");
  EXPECT_THAT(text, HasSubstr("copy {src = %X[%a, 0 :+ 4], dst = %m[0 :+ 4]}"));
  EXPECT_THAT(text, HasSubstr("load {buffer = %m, indices = [3]}"));
  EXPECT_THAT(text, HasSubstr("parallel {extents = [4, 8]}"));
}

TEST(Construct, LoadedIntegersAreWidenedInSubscripts) {
  const std::string text = ir_of(body("    let page = I[b]\n    Y[b] = X[page*64 + I[b + 1]]"));
  EXPECT_THAT(text, HasSubstr("= cast %page : i64"));
  EXPECT_THAT(text, Not(HasSubstr("binary")));
}

TEST(Construct, VarsWhileAndAugmentedAssignment) {
  const std::string text = ir_of(
      body("    n = var i32 = 3\n    s = var f32\n    s = 0\n    while n > 0 { s += X[n]; n -= 1 }\n    Y[b] = s"));
  EXPECT_THAT(text, HasSubstr("%n = alloc {guarded = false} : var i32[]"));
  EXPECT_THAT(text, HasSubstr("while () {"));
  EXPECT_THAT(text, HasSubstr("yield"));
}

TEST(Construct, LoopsUnrollAndGridsRepeat) {
  const std::string text = ir_of(
      "kernel k(X: f32[N]) -> (Y: f32[N]) {\n  for round in unroll(2) { grid (b: N) { Y[b] = X[b] * (round + 1) } "
      "}\n}");
  EXPECT_THAT(text, HasSubstr("real = 0x1p+0"));
  EXPECT_THAT(text, HasSubstr("real = 0x1p+1"));
  EXPECT_THAT(ir_of(body("    for i in serial(2, N, 3) { Y[i] = 0 }")),
              HasSubstr("for {lo = 2, hi = %N, step = 3} (%i: i64)"));
}

TEST(Construct, OperationsOfEveryFamily) {
  const std::string text = ir_of(
      "kernel k(X: f32[N], workspace count: i32[2]) -> (Y: f32[N], H: i32[N]) {\n  grid (b: N) {\n"
      "    x = fragment f32[4, 8]\n    v = fragment f32[4]\n    at = fragment i32[4]\n    any = fragment bool[4]\n"
      "    fill(x, -inf)\n    reduce_absmax(x, v, dim = -1)\n    reduce_any(x, any, dim = 1)\n    reduce_argmin(x, v, "
      "at, dim = 1)\n"
      "    cumsum(x, dim = 0)\n    atomic_add(Y[0 :+ 4], v)\n    for i in parallel(4) { atomic_max(H[i], at[i]) }\n"
      "    let last = arrive_last(count[1], N)\n    if last { print(\"done \", b, \" of \", 7, x[0, 0]) }\n"
      "    assert(b < N, \"blocks\")\n    assume(N % 8 == 0)\n  }\n}");
  for (const char* expected :
       {"reduce {kind = absmax, src = %x[0 :+ 4, 0 :+ 8], dst = %v[0 :+ 4], dim = 1, accumulate = false}",
        "{kind = any, ", "reduce_arg {is_max = false, ", "scan {kind = sum, ", "atomic_tile {kind = add, ",
        "{kind = max, buffer = %H", "arrive_last {counter = %count[1], n = %N} : bool", "print ", "assert ",
        "assume {index = (0 == (%N % 8))}"}) {
    EXPECT_THAT(text, HasSubstr(expected));
  }
}

TEST(Construct, CompileTimeArithmeticFolds) {
  const std::string text =
      ir_of(body("    let a = (7 // 2) * 2 + 7 % 4 + ceildiv(9, 4) + min(3, 5) + (1 << 4)\n"
                 "    Y[b] = a + max(0.5, 2) + select(a > 3, 0.25, 8)"));
  EXPECT_THAT(text, HasSubstr("real = 0x1.0ap+5"));  // 31 + 2 + 0.25
}

TEST(Construct, SelectAdaptsToWhatIsWanted) {
  EXPECT_THAT(ir_of(body("    Y[b] = select(b > 3, 1, 0)")), HasSubstr("select %"));
  EXPECT_THAT(ir_of(body("    Y[b] = X[b] * select(X[b] > 0, 1, -1)")), HasSubstr("select %"));
  EXPECT_THAT(ir_of(body("    let i = select(b > 3, b, 0)\n    Y[i] = 1")), HasSubstr("select((3 < %b), %b, 0)"));
}

TEST(Construct, ExamplesReferencesAndDocsAreDescribed) {
  const std::string text =
      "# About it.\n# X: f32[N].\nkernel k(X: f32[N], scale: f32 = 2.0) -> (Y: f32[N])\n  param fast = true in {true, "
      "false}\n"
      "  config cuda when N > 4 { fast = false }\n  example N = 4\n  example N = 2*5\n"
      "  reference f(X, scale, mask = select(fast, a, b)) + 1\n{ }\n";
  const Result<Source> source = parse_source(text, "input.tile");
  ASSERT_TRUE(source);
  const Result<KernelInfo> info = describe(*source, "k", {});
  ASSERT_TRUE(info) << source->render(info.error());
  EXPECT_EQ(info->doc, "About it.\nX: f32[N].");
  EXPECT_EQ(info->dims, std::vector<std::string>{"N"});
  ASSERT_EQ(info->examples.size(), 2u);
  EXPECT_EQ(info->examples[1].at("N"), 10);
  EXPECT_EQ(to_string(info->references.at(0)), "add(f(X, scale, mask = a), 1)");
  EXPECT_EQ(info->arguments.at(1).default_value, "2.0");
  EXPECT_EQ(info->configs.at(0).when, "N > 4");
  EXPECT_EQ(info->params.at(0).domain.size(), 2u);
}

}  // namespace
}  // namespace tilewright::lang
