// Constructs no kernel of the catalogue needs in C++, text against C++: hints, scans, arg reductions, prints, asserts,
// atomics, arrive_last, local tiles, loops with a step, while.
#include <gtest/gtest.h>

#include "ir/printer.h"
#include "lang/recorded.h"

namespace tilewright::kernel {
namespace {

using lang::finish;

constexpr const char* kText = R"(
kernel constructs(A: f32[N], inout count: i32[1], inout H: i32[4], n: i64) -> (C: f32[N])
  where N >= 1
  alias(A, C)
{
  grid (b: ceildiv(N, 32)) threads(64) persistent(group = 2) {
    x = shared f32[32] layout("padded")
    y = fragment f32[32]
    best = fragment f32[1]
    place = fragment i32[1]
    copy(A[b*32 :+ 32], x, vector = 2, cache = "stream")
    copy(x, y, -1.0)
    cumsum(y)
    reduce_argmax(y, best, place)
    print("largest", best[0])
    assert(best[0] < 100.0, "large")
    if arrive_last(count[0], n) { count[0] = 0 }
    for j in parallel(32) {
      t = local f32[2]
      t[0] = load(A[b*32 + j + 1], 0.5)
      atomic_add(H[j % 4], 1)
      if b*32 + j < N { C[b*32 + j] = t[0] + y[j] }
    }
    s = var f32
    s = 0.0
    for i in serial(0, n, 2) { s = s + y[0] }
    while s > 1.0 { s = s * 0.5 }
  }
}
)";

ir::Kernel in_cpp() {
  KernelBuilder k("constructs");
  const Index N = k.dim("N");
  const Tile A = k.input("A", DType::F32, {N});
  const Tile count = k.inout("count", DType::I32, {1}), H = k.inout("H", DType::I32, {4});
  const Index n = k.index_scalar("n");
  const Tile C = k.output("C", DType::F32, {N});
  k.where(N >= 1);
  k.alias("A", "C");
  k.grid({ceildiv(N, 32)}, {.threads = 64, .persistent = true, .group = 2}, [&](Index b) {
    const Tile x = shared(DType::F32, {32}, SharedOptions{.layout = "padded"});
    const Tile y = fragment(DType::F32, {32});
    const Tile best = fragment(DType::F32, {1});
    const Tile place = fragment(DType::I32, {1});
    copy(A[{at(b * 32, 32)}], x, CopyOptions{.vector = 2, .cache = "stream"});
    copy(x, y, -1.0);
    operation("cumsum", {y});
    reduce_argmax(y, best, place);
    print({"largest", best(0)});
    assert_(best(0) < 100.0, "large");
    if_(arrive_last(count(0), n), [&] { count(0) = 0; });
    parallel({32}, [&](Index j) {
      const Tile t = local(DType::F32, {2});
      t(0) = load(A(b * 32 + j + 1), 0.5);
      atomic_add(H(j % 4), 1);
      if_(b * 32 + j < N, [&] { C(b * 32 + j) = t(0) + y(j); });
    });
    const Tile s = var(DType::F32);
    s.all() = 0.0;
    serial(0, n, 2, [&](Index) { s.all() = s + y(0); });
    while_([&] { return s > 1.0; }, [&] { s.all() = s * 0.5; });
  });
  return finish(k);
}

TEST(CppConstructs, EqualTheText) {
  const ir::Kernel text = lang::instantiate_text(kText, "constructs", {});
  const ir::Kernel cpp = in_cpp();
  EXPECT_EQ(ir::to_text(text, {.names = false}), ir::to_text(cpp, {.names = false}));
  EXPECT_NE(ir::to_text(cpp).find("hints {instruction = any, avoid = any, cache = stream, vector = 2"),
            std::string::npos);
}

constexpr const char* kHeader = R"(
# What it is for,
# in two lines.
kernel header(guarded X: f32[M, N], optional bias: f32[N], workspace W: f32[M], scale: f32 = 0.5, flag: bool = true) -> (Y: f32[M, N])
  param block = 8 in {4, 8, 16}
  config cpu when M <= 4 { block = 4 }
  where N % 2 == 0
  example M = 5, N = 6
  reference softmax(X)
{
  grid (m: ceildiv(M, block)) threads(4 * block) {
    x = fragment f32[block, N]
    p = fragment f32[block, N]
    q = shared f16[16, 16]
    r = fragment f32[16, 16]
    s = fragment f32[block]
    i = fragment i64[block]
    copy(X[m * block :+ block, :], x)
    if present(bias) {
      for a, b in parallel(block, N) { x[a, b] += bias[b] }
    }
    cummax(x, p, 0)
    reduce_absmax(p, s, dim = 1, accumulate = true)
    reduce_argmin(p, s, i, 1)
    fill(q, 0)
    gemm(q, q, r, transpose_a = true, transpose_b = true, accumulate = false, avoid = "mma")
    n = var i32 = 3
    for u in unroll(2) { n -= 1 }
    if n > 0 and not flag { s *= scale } else { s /= -scale }
    assume(m >= 0)
    for c in serial(0, N) { x[0, c] = select(isnan(x[0, c]), 0.0, min(x[0, c], highest(f32))) }
    for c in serial(N) { W[m] = pow(x[0, c], 2.0) + cast(bitcast(x[0, c], i32) // 3 % 5 << 1, f32) }
    atomic_max(W[m * block :+ block], s)
    copy(x, Y[m * block :+ block, :], vector = 4)
  }
}
)";

std::string header_in_cpp() {
  KernelBuilder k("header");
  k.doc("What it is for,\nin two lines.");
  const Index M = k.dim("M"), N = k.dim("N");
  const Tile X = k.input("X", DType::F32, {M, N}, {.guarded = true});
  const Tile bias = k.input("bias", DType::F32, {N}, ArgumentOptions().with_optional());
  const Tile W = k.workspace("W", DType::F32, {M});
  const Value scale = k.scalar("scale", DType::F32, 0.5), flag = k.scalar("flag", DType::Bool, true);
  const Tile Y = k.output("Y", DType::F32, {M, N});
  const Index block = k.param("block", 8, {4, 8, 16});
  k.clause("config cpu when M <= 4 { block = 4 }");
  k.where(N % 2 == 0);
  k.example({{M, 5}, {N, 6}});
  k.reference("softmax(X)");
  k.grid({ceildiv(M, block)}, threads(4 * block), [&](Index m) {
    const Tile x = fragment(DType::F32, {block, N}), p = fragment(DType::F32, {block, N});
    const Tile q = shared(DType::F16, {16, 16}), r = fragment(DType::F32, {16, 16});
    const Tile s = fragment(DType::F32, {block}), i = fragment(DType::I64, {block});
    copy(X[{at(m * block, block), whole()}], x);
    if_(present(bias), [&] { parallel({block, N}, [&](Index a, Index b) { x(a, b) += bias(b); }); });
    cummax(x, p, 0);
    reduce_absmax(p, s, ReduceOptions().along(1).with_accumulate());
    reduce_argmin(p, s, i, 1);
    fill(q, 0);
    gemm(q, q, r, GemmOptions().with_transpose_a().with_transpose_b().without_accumulate().with_avoid("mma"));
    const Tile n = var(DType::I32, 3);
    unroll(2, [&](Index) { n.all() -= 1; });
    if_(
        n > 0 && !flag, [&] { s.all() *= scale; }, [&] { s.all() /= -scale; });
    assume(m >= 0);
    serial(0, N, [&](Index c) { x(0, c) = select(isnan(x(0, c)), 0.0, min(x(0, c), highest(DType::F32))); });
    serial(N, [&](Index c) {
      W(m) = pow(x(0, c), 2.0) + cast((floordiv(bitcast(x(0, c), DType::I32), 3) % 5) << 1, DType::F32);
    });
    atomic_max(W[{at(m * block, block)}], s);
    copy(x, Y[{at(m * block, block), whole()}], CopyOptions().with_vector(4));
  });
  return k.text();
}

TEST(CppConstructs, HeadersEqualTheText) {
  const std::string cpp = header_in_cpp();
  for (const bool absent : {false, true}) {
    for (const int64_t block : {8, 16}) {
      lang::Configuration c{.params = {{"block", block}}, .dims = {{"N", 6}}};
      if (absent) c.absent.insert("bias");
      EXPECT_EQ(ir::to_text(lang::instantiate_text(kHeader, "header", c), {.names = false}),
                ir::to_text(lang::instantiate_text(cpp, "header", c), {.names = false}));
    }
  }
  const auto text_source = lang::parse_source(kHeader, "header.tile"),
             cpp_source = lang::parse_source(cpp, "header.tile");
  ASSERT_TRUE(text_source && cpp_source);
  const auto text = lang::describe(*text_source, "header", {.dims = {{"M", 3}}}),
             made = lang::describe(*cpp_source, "header", {.dims = {{"M", 3}}});
  ASSERT_TRUE(text && made) << cpp_source->render(made.error());
  EXPECT_EQ(made->doc, text->doc);
  EXPECT_EQ(made->examples, text->examples);
  EXPECT_EQ(made->config_row, 0);
  ASSERT_EQ(made->params.size(), 1u);
  EXPECT_EQ(made->params[0].value, lang::ParamValue(int64_t{4}));
  EXPECT_EQ(made->params[0].domain, text->params[0].domain);
  ASSERT_EQ(made->references.size(), 1u);
  EXPECT_EQ(to_string(made->references[0]), "softmax(X)");
  ASSERT_EQ(made->arguments.size(), text->arguments.size());
  for (size_t i = 0; i < made->arguments.size(); ++i) {
    EXPECT_EQ(made->arguments[i].name, text->arguments[i].name);
    EXPECT_EQ(made->arguments[i].optional, text->arguments[i].optional);
    EXPECT_EQ(made->arguments[i].default_value, text->arguments[i].default_value);
  }
}

TEST(CppConstructs, AWrongHintIsRefused) {
  KernelBuilder k("wrong");
  const Tile A = k.input("A", DType::F32, {8});
  try {
    k.grid({1}, threads(32),
           [&](Index) { copy(A[{at(0, 8)}], shared(DType::F32, {8}), CopyOptions{.cache = "often"}); });
    finish(k);
    FAIL() << "accepted";
  } catch (const lang::TextRefused& refused) {
    EXPECT_EQ(refused.diagnostic.message, "`cache` has no value \"often\"");
    EXPECT_EQ(refused.diagnostic.code, DiagnosticCode::E1110);
  }
}

}  // namespace
}  // namespace tilewright::kernel
