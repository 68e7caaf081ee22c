// The C++ spelling (tilewright/kernel.h) gives the IR of the text, for three kernels; its errors show C++ lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/printer.h"
#include "ir/verify.h"
#include "lang/recorded.h"

namespace tilewright::kernel {
namespace {

using lang::Configuration;
using lang::finish;

constexpr DType f32 = DType::F32;

ir::Kernel from_text(const std::string& file, std::string_view kernel, const Configuration& configuration) {
  const Result<lang::Source> source = lang::load_source(std::string(TW_SOURCE_DIR) + "/kernels/" + file);
  if (!source) throw std::runtime_error(render(source.error()));
  Result<ir::Kernel> made = lang::instantiate(*source, kernel, configuration);
  if (!made) throw std::runtime_error(source->render(made.error()));
  return std::move(*made);
}

void expect_equal(const ir::Kernel& text, const ir::Kernel& cpp) {
  const Status valid = ir::verify(cpp);
  EXPECT_TRUE(valid) << render(valid.error());
  EXPECT_EQ(ir::to_text(text, {.names = false}), ir::to_text(cpp, {.names = false}));
  EXPECT_TRUE(ir::equal(text, cpp));
  EXPECT_EQ(ir::content_key(text), ir::content_key(cpp));
}

struct MatmulConfig {
  DType T = DType::F16;
  int block_M = 144, block_N = 256, block_K = 256, num_stages = 3;
};

ir::Kernel matmul_relu(MatmulConfig c) {
  KernelBuilder k("matmul_relu");
  const Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  const Tile A = k.input("A", c.T, {M, K}), B = k.input("B", c.T, {K, N}), C = k.output("C", c.T, {M, N});
  k.grid({ceildiv(N, c.block_N), ceildiv(M, c.block_M)}, threads(256), [&](Index bx, Index by) {
    const Tile A_s = shared(c.T, {c.block_M, c.block_K});
    const Tile B_s = shared(c.T, {c.block_K, c.block_N});
    const Tile acc = fragment(f32, {c.block_M, c.block_N});
    clear(acc);
    pipelined(ceildiv(K, c.block_K), c.num_stages, [&](Index k0) {
      copy(A[{at(by * c.block_M, c.block_M), at(k0 * c.block_K, c.block_K)}], A_s);
      copy(B[{at(k0 * c.block_K, c.block_K), at(bx * c.block_N, c.block_N)}], B_s);
      gemm(A_s, B_s, acc);
    });
    acc.all() = max(acc, 0);
    copy(acc, C[{at(by * c.block_M, c.block_M), at(bx * c.block_N, c.block_N)}]);
  });
  return finish(k);
}

TEST(CppKernel, MatmulRelu) {
  expect_equal(from_text("matmul_relu.tile", "matmul_relu", {}), matmul_relu({}));
  const Configuration small{
      .params = {{"T", tilewright::DType::F32}, {"block_M", int64_t{4}}, {"num_stages", int64_t{2}}}};
  expect_equal(from_text("matmul_relu.tile", "matmul_relu", small),
               matmul_relu({.T = f32, .block_M = 4, .num_stages = 2}));
}

ir::Kernel online_softmax(DType T, int block_R, int block_C) {
  KernelBuilder k("online_softmax");
  const Index R = k.dim("R"), C = k.dim("C");
  const Tile X = k.input("X", T, {R, C}), Y = k.output("Y", T, {R, C});
  k.grid({ceildiv(R, block_R)}, threads(128), [&](Index r) {
    const Tile x = fragment(f32, {block_R, block_C});
    const Tile m = fragment(f32, {block_R}), m_new = fragment(f32, {block_R}), l = fragment(f32, {block_R});
    const auto tile = [&](const Tile& of, const Index& c) {
      return of[{at(r * block_R, block_R), at(c * block_C, block_C)}];
    };
    fill(m, lowest(f32));
    clear(l);
    serial(ceildiv(C, block_C), [&](Index c) {
      copy(tile(X, c), x, -inf());
      copy(m, m_new);
      reduce("max", x, m_new, {.dim = 1, .accumulate = true});
      l.all() = l * exp(m - m_new);
      m.all() = m_new;
      x.all() = exp(x - m[{whole(), repeat()}]);
      reduce("sum", x, l, {.dim = 1, .accumulate = true});
    });
    l.all() = 1 / l;
    serial(ceildiv(C, block_C), [&](Index c) {
      copy(tile(X, c), x, -inf());
      x.all() = exp(x - m[{whole(), repeat()}]) * l[{whole(), repeat()}];
      copy(x, tile(Y, c));
    });
  });
  return finish(k);
}

TEST(CppKernel, OnlineSoftmax) {
  expect_equal(from_text("softmax.tile", "online_softmax", {}), online_softmax(f32, 1, 4096));
  expect_equal(from_text("softmax.tile", "online_softmax", {.target = lang::Target::Cuda}),
               online_softmax(f32, 1, 1024));
}

ir::Kernel attention(DType E, bool causal, int block_M, int block_N, const Configuration& sizes) {
  KernelBuilder k("attention");
  const Index B = k.dim("B"), S = k.dim("S"), T = k.dim("T"), HQ = k.dim("HQ"), HK = k.dim("HK"), D = k.dim("D");
  const Tile Q = k.input("Q", E, {B, S, HQ, D}), K = k.input("K", E, {B, T, HK, D}), V = k.input("V", E, {B, T, HK, D});
  const Value scale = k.scalar("scale", f32);
  const Tile O = k.output("O", E, {B, S, HQ, D});
  k.where(HQ % HK == 0);
  k.grid({ceildiv(S, block_M), HQ, B}, {.threads = 2 * block_M, .persistent = true}, [&](Index q, Index h, Index b) {
    const Tile Q_s = shared(E, {block_M, D}), K_s = shared(E, {block_N, D}), V_s = shared(E, {block_N, D});
    const Tile s = fragment(f32, {block_M, block_N}), p = fragment(E, {block_M, block_N}),
               o = fragment(f32, {block_M, D});
    const Tile m = fragment(f32, {block_M}), m_new = fragment(f32, {block_M}), r = fragment(f32, {block_M}),
               l = fragment(f32, {block_M});
    fill(m, lowest(f32));
    clear(l);
    clear(o);
    copy(Q[{b, at(q * block_M, block_M), h, whole()}], Q_s);
    const Index last = T - S;
    const Index end = causal ? min(T, (q + 1) * block_M + last) : T;
    pipelined(ceildiv(end, block_N), 2, [&](Index t) {
      const Index kv = floordiv(h, floordiv(HQ, HK));
      copy(K[{b, at(t * block_N, block_N), kv, whole()}], K_s);
      copy(V[{b, at(t * block_N, block_N), kv, whole()}], V_s);
      gemm(Q_s, K_s, s, {.transpose_b = true, .accumulate = false});
      parallel({block_M, block_N}, [&](Index i, Index j) {
        Value seen = t * block_N + j < T;
        if (causal) seen = seen && t * block_N + j <= q * block_M + i + last;
        s(i, j) = select(seen, s(i, j) * (scale * 1.4426950408889634), -inf());
      });
      copy(m, m_new);
      reduce("max", s, m_new, {.dim = 1, .accumulate = true});
      r.all() = exp2(m - m_new);
      l.all() = l * r;
      m.all() = m_new;
      s.all() = exp2(s - m_new[{whole(), repeat()}]);
      p.all() = s;
      reduce("sum", s, l, {.dim = 1, .accumulate = true});
      o.all() = o * r[{whole(), repeat()}];
      gemm(p, V_s, o);
    });
    r.all() = 1 / l;
    parallel({block_M, D}, [&](Index i, Index j) { o(i, j) = select(l(i) > 0, o(i, j) * r(i), 0); });
    copy(o, O[{b, at(q * block_M, block_M), h, whole()}]);
  });
  return finish(k, sizes);
}

TEST(CppKernel, Attention) {
  for (const bool causal : {true, false}) {
    Configuration c{.params = {{"causal", causal}, {"E", tilewright::DType::BF16}}, .dims = {{"D", 64}}};
    const ir::Kernel text = from_text("attention.tile", "attention", c);
    expect_equal(text, attention(DType::BF16, causal, 96, 64, {.dims = {{"D", 64}}}));
  }
}

TEST(CppKernel, ErrorsNameTheLineOfCpp) {
  int line = 0;
  try {
    KernelBuilder k("wrong");
    const Tile X = k.input("X", f32, {k.dim("N")});
    k.grid({1}, threads(32), [&](Index) {
      const Tile x = fragment(f32, {4});
      line = __LINE__ + 1;
      copy(X[{at(0, 8)}], x);
    });
    finish(k);
    FAIL();
  } catch (const lang::TextRefused& refused) {
    EXPECT_THAT(refused.what(), testing::HasSubstr("# cpp_kernel_test.cpp:" + std::to_string(line) + "\n"));
    EXPECT_THAT(refused.what(), testing::HasSubstr("error[E1031]: dimension 0 has extent 8 in X and 4 in"));
  }
}

TEST(CppKernel, AssignmentsCarryTheirLine) {
  KernelBuilder k("lines");
  const Tile X = k.input("X", f32, {k.dim("N")});
  int line = 0;
  k.grid({1}, threads(32), [&](Index) {
    line = __LINE__ + 1;
    parallel({4}, [&](Index i) { X(i) = 1.0; });
  });
  try {
    finish(k);
    FAIL();
  } catch (const lang::TextRefused& refused) {
    EXPECT_THAT(refused.what(), testing::HasSubstr("# cpp_kernel_test.cpp:" + std::to_string(line) + "\n"));
    EXPECT_THAT(refused.what(), testing::HasSubstr("error[E1052]: `X` is an input and cannot be written"));
  }
}

TEST(CppKernel, LetEvaluatesOnceAndControlFlowIsRecorded) {
  KernelBuilder k("control");
  const Index N = k.dim("N");
  const Tile X = k.input("X", f32, {N}), Y = k.output("Y", f32, {N});
  k.grid({N}, threads(32), [&](Index b) {
    const Tile count = var(DType::I32);
    count.all() = 0;
    while_([&] { return count < 3; }, [&] { count.all() = count + 1; });
    const Value x = let(X(b));
    if_(
        x > 0, [&] { Y(b) = x * x; }, [&] { Y(b) = cast(count, f32); });
  });
  const std::string text = ir::to_text(finish(k));
  size_t loads = 0;
  for (size_t at = text.find("load {buffer = %X"); at != std::string::npos; at = text.find("load {buffer = %X", at + 1))
    ++loads;
  EXPECT_EQ(loads, 1u) << text;
}

TEST(CppKernel, TwoKernelsAreNotBuiltInsideOneAnother) {
  KernelBuilder k("first");
  KernelBuilder("second");  // one after the other is fine
  k.grid({1}, threads(32), [&](Index) {
    EXPECT_THROW(KernelBuilder("third"), Refused);
    try {
      KernelBuilder("third");
    } catch (const Refused& refused) {
      EXPECT_STREQ(refused.what(),
                   "error: kernel `third` is built inside the grid of `first`: finish one before the next");
    }
  });
}

TEST(CppKernel, StatementsOutsideOfABuilderAreRefused) {
  try {
    shared(f32, {});
    FAIL();
  } catch (const Refused& refused) {
    EXPECT_STREQ(refused.what(),
                 "error: tiles, operations and assignments belong into a KernelBuilder: make one first");
  }
}

TEST(CppKernel, AGridAndItsBodyAgree) {
  KernelBuilder k("grid");
  const int line = __LINE__ + 2;
  try {
    k.grid({1, 2}, threads(32), [](Index) {});
    FAIL();
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.what(), "cpp_kernel_test.cpp:" + std::to_string(line) +
                                  ": error: the grid has 2 extents and its body takes 1 variables");
  }
}

TEST(CppKernel, AnEndlessExpressionIsRefused) {
  Value x = 1.5;
  EXPECT_THROW(for (int i = 0; i < 100; ++i) x = x + x, Refused);
}

template <typename T>
concept Divides = requires(T x) {
  x / x;
};
static_assert(!Divides<Index>, "indices have no `/`");
static_assert(Divides<Value>);

}  // namespace
}  // namespace tilewright::kernel
