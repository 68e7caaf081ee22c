// Constructs no kernel of the catalogue needs in C++, text against C++: hints, scans, arg reductions, prints, asserts,
// atomics, arrive_last, local tiles, loops with a step, while.
#include <gtest/gtest.h>

#include "ir/printer.h"
#include "lang/embedded.h"

namespace tilewright::lang::embedded {
namespace {

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
    operation("reduce_argmax", {y, best, place});
    operation("print", {text("largest"), best(0)});
    operation("assert", {best(0) < 100.0, text("large")});
    if_(arrive_last(count(0), n), [&] { count(0) = 0; });
    parallel({32}, [&](Index j) {
      const Tile t = local(DType::F32, {2});
      t(0) = load(A(b * 32 + j + 1), 0.5);
      operation("atomic_add", {H(j % 4), 1});
      if_(b * 32 + j < N, [&] { C(b * 32 + j) = t(0) + y(j); });
    });
    const Tile s = var(DType::F32);
    s.all() = 0.0;
    serial(0, n, 2, [&](Index) { s.all() = s + y(0); });
    while_([&] { return s > 1.0; }, [&] { s.all() = s * 0.5; });
  });
  return k.finish();
}

TEST(EmbeddedConstructs, EqualTheText) {
  const Result<Source> source = parse_source(kText, "constructs.tile");
  ASSERT_TRUE(source) << render(source.error(), kText);
  const Result<ir::Kernel> made = instantiate(*source, "constructs", {});
  ASSERT_TRUE(made) << source->render(made.error());
  const ir::Kernel cpp = in_cpp();
  EXPECT_EQ(ir::to_text(*made, {.names = false}), ir::to_text(cpp, {.names = false}));
  EXPECT_NE(ir::to_text(cpp).find("hints {instruction = any, avoid = any, cache = stream, vector = 2"),
            std::string::npos);
}

TEST(EmbeddedConstructs, AWrongHintIsRefused) {
  KernelBuilder k("wrong");
  const Tile A = k.input("A", DType::F32, {8});
  try {
    k.grid({1}, threads(32),
           [&](Index) { copy(A[{at(0, 8)}], shared(DType::F32, {8}), CopyOptions{.cache = "often"}); });
    k.finish();
    FAIL() << "accepted";
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.diagnostic.message, "`cache` has no value \"often\"");
    EXPECT_EQ(refused.diagnostic.code, DiagnosticCode::E1110);
  }
}

}  // namespace
}  // namespace tilewright::lang::embedded
