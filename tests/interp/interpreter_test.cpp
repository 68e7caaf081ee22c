#include "interp/interpreter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>

#include "base/narrow_float.h"
#include "test_kernels.h"

namespace tilewright::interp {
namespace {

using ir::BinaryOp;
using ir::Index;
using ir::MemorySpace;
using ir::Value;

TensorRef ref(std::vector<float>& v, std::vector<int64_t> shape) {
  return {DType::F32, v.data(), std::move(shape), {}};
}

std::vector<float> random_floats(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float& x : v) x = normal(random);
  return v;
}

TEST(Interpreter, MatmulAtOddExtentsIsExactOnIntegers) {
  for (const auto& [m, n, k] :
       {std::array{1, 1, 1}, std::array{17, 33, 5}, std::array{16, 16, 16}, std::array{31, 7, 40}}) {
    std::mt19937 random(7);
    std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)), c(static_cast<size_t>(m * n), -1);
    for (float& x : a) x = static_cast<float>(static_cast<int>(random() % 9) - 4);
    for (float& x : b) x = static_cast<float>(static_cast<int>(random() % 9) - 4);
    const ir::Kernel kernel = matmul_relu(16, 16, 8);
    const auto out = run(kernel, {.tensors = {ref(a, {m, k}), ref(b, {k, n}), ref(c, {m, n})}}, {.check = true});
    ASSERT_TRUE(out) << render(out.error());
    EXPECT_TRUE(out->findings.empty()) << render(out->findings[0]);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int p = 0; p < k; ++p) sum += a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
        ASSERT_EQ(c[static_cast<size_t>(i * n + j)], std::max(sum, 0.0f)) << i << ", " << j;
      }
    }
  }
}

TEST(Interpreter, BoundHoldsForAnotherOrderAndIsNotVacuous) {
  const int m = 33, n = 20, k = 100;
  auto a = random_floats(static_cast<size_t>(m * k), 1), b = random_floats(static_cast<size_t>(k * n), 2);
  std::vector<float> c(static_cast<size_t>(m * n));
  const ir::Kernel kernel = matmul_relu(16, 16, 32);
  const auto out = run(kernel, {.tensors = {ref(a, {m, k}), ref(b, {k, n}), ref(c, {m, n})}}, {.mode = Mode::Bounded});
  ASSERT_TRUE(out) << render(out.error());
  const Column& e = out->expected[2].elements;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float backwards = 0;
      for (int p = k; p-- > 0;) backwards += a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
      backwards = std::max(backwards, 0.0f);
      const auto at = static_cast<size_t>(i * n + j);
      ASSERT_LE(std::fabs(backwards - e.real[at]), e.bound[at]);
      ASSERT_LT(e.bound[at], 1e-3);
    }
  }
}

TEST(Interpreter, StridedArgumentsAndNarrowTypes) {
  TestKernel k;
  Value *m = k.dimension("M"), *n = k.dimension("N");
  Value* x = k.tensor("X", DType::F16, {k.at(m), k.at(n)});
  Value* y = k.tensor("Y", DType::BF16, {k.at(m), k.at(n)}, ir::Direction::Out);
  k.b.grid({.extents = {k.at(m)}}, [&](const std::vector<Value*>& block) {
    k.b.parallel({k.at(n)}, [&](const std::vector<Value*>& i) {
      k.b.store(y, {k.at(block[0]), k.at(i[0])}, k.b.load(x, {k.at(block[0]), k.at(i[0])}));
    });
  });
  std::vector<uint16_t> in(4 * 8), out(3 * 5, 0x7FC0);
  for (size_t i = 0; i < in.size(); ++i) in[i] = f16_from(0.1f * static_cast<float>(i));
  const Call call = {.tensors = {{DType::F16, in.data(), {3, 5}, {8, 1}}, {DType::BF16, out.data(), {3, 5}, {1, 3}}}};
  ASSERT_TRUE(run(k.kernel, call));
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 5; ++j) EXPECT_EQ(out[i + 3 * j], bf16_from(f16_to_float(in[i * 8 + j])));
  }
}

/// One block, one `parallel` over 8 iterations of the given body, on X: f32[8].
std::vector<Diagnostic> findings_of(const std::function<void(TestKernel&, Value* x, Index i)>& body,
                                    bool guarded = false) {
  TestKernel k;
  Value* x = k.tensor("X", DType::F32, {k.c(8)}, ir::Direction::InOut);
  k.kernel.tensors[0].guarded = guarded;
  k.b.grid({.extents = {k.c(1)}}, [&](const std::vector<Value*>& block) {
    block[0]->name = "bx";
    k.b.parallel({k.c(8)}, [&](const std::vector<Value*>& i) {
      i[0]->name = "i";
      k.line(7);
      body(k, x, k.at(i[0]));
    });
  });
  std::vector<float> data(8, 1);
  const auto out = run(k.kernel, {.tensors = {ref(data, {8})}}, {.check = true, .batch = 3});
  EXPECT_TRUE(out) << render(out.error());
  return out ? out->findings : std::vector<Diagnostic>();
}

void expect_one(const std::vector<Diagnostic>& findings, DiagnosticCode code, const std::string& message) {
  ASSERT_EQ(findings.size(), 1u) << (findings.empty() ? "" : render(findings[0]));
  EXPECT_EQ(findings[0].code, code);
  EXPECT_EQ(findings[0].message, message);
  EXPECT_EQ(findings[0].location.line, 7);
}

TEST(Check, TwoIterationsWriteOneElement) {
  expect_one(
      findings_of([](TestKernel& k, Value* x, Index i) { k.b.store(x, {floordiv(i, 2)}, k.b.real(DType::F32, 1)); }),
      DiagnosticCode::E1200, "iterations (i=0) and (i=1) both write X[0]");
}

TEST(Check, IterationsThatCommunicate) {
  const auto findings =
      findings_of([](TestKernel& k, Value* x, Index i) { k.b.store(x, {i}, k.b.load(x, {floormod(i + 1, k.c(8))})); });
  ASSERT_EQ(findings.size(), 2u);  // the store that overwrites what another read, and the last load
  for (const Diagnostic& d : findings) {
    EXPECT_EQ(d.code, DiagnosticCode::E1201);
    EXPECT_EQ(d.location.line, 7);
  }
  EXPECT_EQ(findings[0].message, "iterations (i=0) and (i=1) communicate through X[1]");
  EXPECT_EQ(findings[1].message, "iterations (i=0) and (i=7) communicate through X[0]");
}

TEST(Check, ElementsOutOfBounds) {
  expect_one(findings_of([](TestKernel& k, Value* x, Index i) { k.b.store(x, {i + 2}, k.b.real(DType::F32, 0)); }),
             DiagnosticCode::E1203, "X[8] is outside X[8], by iteration (i=6), block (bx=0)");
}

TEST(Check, GuardsAndConditionsExcludeBounds) {
  const auto beyond = [](TestKernel& k, Value* x, Index i) { k.b.store(x, {i + 2}, k.b.real(DType::F32, 0)); };
  EXPECT_TRUE(findings_of(beyond, true).empty());
  EXPECT_TRUE(findings_of([&](TestKernel& k, Value* x, Index i) {
                k.b.if_else(k.b.index_condition(less(i, k.c(6))), [&](const std::vector<Value*>&) { beyond(k, x, i); });
              }).empty());
}

TEST(Check, UninitialisedReads) {
  expect_one(findings_of([](TestKernel& k, Value* x, Index i) {
               Value* t = k.b.alloc(MemorySpace::Local, DType::F32, {4}, "t");
               k.b.store(t, {k.c(0)}, k.b.real(DType::F32, 1));
               k.b.store(x, {i}, k.b.load(t, {k.c(1)}));
             }),
             DiagnosticCode::E1204, "t[1] is read before anything was written to it, by iteration (i=0), block (bx=0)");
}

TEST(Check, DivisionByZeroOnActiveLanesOnly) {
  const auto divide = [](TestKernel& k, Value* x, Index i) {
    Value* q = k.b.binary(BinaryOp::FloorDiv, k.b.integer(DType::I64, 5), k.b.index_value(i));
    k.b.store(x, {i}, k.b.cast(q, DType::F32));
  };
  expect_one(findings_of(divide), DiagnosticCode::E1205, "integer division by zero, in iteration (i=0), block (bx=0)");
  EXPECT_TRUE(findings_of([&](TestKernel& k, Value* x, Index i) {
                k.b.if_else(k.b.index_condition(less(k.c(0), i)), [&](const std::vector<Value*>&) { divide(k, x, i); });
              }).empty());
}

TEST(Check, BlocksThatRace) {
  TestKernel k;
  Value* x = k.tensor("X", DType::F32, {k.c(4)}, ir::Direction::Out);
  k.b.grid({.extents = {k.c(4)}}, [&](const std::vector<Value*>& block) {
    block[0]->name = "bx";
    k.line(3);
    k.b.parallel({k.c(2)}, [&](const std::vector<Value*>& i) {
      k.b.store(x, {k.at(block[0]) + k.at(i[0])}, k.b.real(DType::F32, 1));
    });
  });
  std::vector<float> data(4);
  const auto out = run(k.kernel, {.tensors = {ref(data, {4})}}, {.check = true});
  ASSERT_TRUE(out);
  ASSERT_GE(out->findings.size(), 1u);
  EXPECT_EQ(out->findings[0].message, "blocks (bx=0) and (bx=1) both write X[1]");
  EXPECT_EQ(out->findings[0].code, DiagnosticCode::E1202);
}

TEST(Check, LoopsAndCarriedValuesWithDifferentTripCounts) {
  // x[i] = sum of 0..i-1, by a divergent loop inside `parallel`.
  TestKernel k;
  Value* x = k.tensor("X", DType::F32, {k.c(8)}, ir::Direction::Out);
  k.b.grid({.extents = {k.c(1)}}, [&](const std::vector<Value*>&) {
    k.b.parallel({k.c(8)}, [&](const std::vector<Value*>& i) {
      ir::Op* loop =
          k.b.for_loop(k.c(0), k.at(i[0]), k.c(1), {k.b.real(DType::F32, 0)}, [&](const std::vector<Value*>& v) {
            k.b.yield({k.b.binary(BinaryOp::Add, v[1], k.b.cast(k.b.index_value(k.at(v[0])), DType::F32))});
          });
      k.b.store(x, {k.at(i[0])}, loop->result());
    });
  });
  std::vector<float> data(8, -1);
  const auto out = run(k.kernel, {.tensors = {ref(data, {8})}}, {.check = true, .batch = 5});
  ASSERT_TRUE(out) << render(out.error());
  EXPECT_TRUE(out->findings.empty());
  EXPECT_EQ(data, (std::vector<float>{0, 0, 1, 3, 6, 10, 15, 21}));
}

TEST(Check, EndlessWhileStops) {
  TestKernel k;
  Value* x = k.tensor("X", DType::F32, {k.c(1)}, ir::Direction::Out);
  k.b.grid({.extents = {k.c(1)}}, [&](const std::vector<Value*>&) {
    k.line(9);
    k.b.while_loop([&](const std::vector<Value*>&) { k.b.yield({k.b.integer(DType::Bool, 1)}); },
                   [&](const std::vector<Value*>&) { k.b.store(x, {k.c(0)}, k.b.real(DType::F32, 1)); });
  });
  std::vector<float> data(1);
  const auto out = run(k.kernel, {.tensors = {ref(data, {1})}}, {.step_limit = 10000});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, DiagnosticCode::E1209);
  EXPECT_EQ(out.error().location.line, 9);
}

TEST(Check, UnwrittenOutputIsNamed) {
  TestKernel k;
  Value* x = k.tensor("X", DType::F32, {k.c(3), k.c(3)}, ir::Direction::Out);
  k.b.grid({.extents = {k.c(1)}}, [&](const std::vector<Value*>&) {
    k.b.fill(k.region(x, {{k.c(0), k.c(3)}, {k.c(0), k.c(2)}}), k.b.real(DType::F32, 1));
  });
  std::vector<float> data(9);
  const auto out = run(k.kernel, {.tensors = {ref(data, {3, 3})}}, {.check = true});
  ASSERT_TRUE(out);
  ASSERT_EQ(out->findings.size(), 1u);
  EXPECT_EQ(out->findings[0].message, "3 of 9 elements of X were never written, the first is X[0, 2]");
}

TEST(Bounded, ConditionsCloserThanTheBoundAreTaintedNotGuessed) {
  // y[i] = exp(x[i]) > c ? 1 : 2 where exp(x[0]) is c up to rounding and exp(x[1]) is far from it.
  TestKernel k;
  Value* x = k.tensor("X", DType::F32, {k.c(2)});
  Value* y = k.tensor("Y", DType::F32, {k.c(2)}, ir::Direction::Out);
  k.b.grid({.extents = {k.c(1)}}, [&](const std::vector<Value*>&) {
    k.b.parallel({k.c(2)}, [&](const std::vector<Value*>& i) {
      Value* e = k.b.unary(ir::UnaryOp::Exp, k.b.load(x, {k.at(i[0])}));
      Value* over = k.b.compare(ir::CompareOp::Gt, e, k.b.real(DType::F32, std::exp(0.5f)));
      k.b.if_else(
          over, [&](const std::vector<Value*>&) { k.b.store(y, {k.at(i[0])}, k.b.real(DType::F32, 1)); },
          [&](const std::vector<Value*>&) { k.b.store(y, {k.at(i[0])}, k.b.real(DType::F32, 2)); });
    });
  });
  std::vector<float> in = {0.5f, 3.0f}, out(2);
  const auto outcome = run(k.kernel, {.tensors = {ref(in, {2}), ref(out, {2})}}, {.mode = Mode::Bounded});
  ASSERT_TRUE(outcome) << render(outcome.error());
  const Column& e = outcome->expected[1].elements;
  EXPECT_TRUE(std::isinf(e.bound[0]));
  EXPECT_EQ(e.bound[1], 0);
  EXPECT_EQ(e.real[1], 1);
}

TEST(Speed, ReportsElementOperations) {
  // Not asserted: printed for people (the aim is 50 M element operations a second).
  const int n = 192;
  auto a = random_floats(n * n, 1), b = random_floats(n * n, 2);
  std::vector<float> c(n * n);
  const ir::Kernel kernel = matmul_relu(64, 64, 64);
  for (const Options& options : {Options{}, Options{.check = true}, Options{.mode = Mode::Bounded}}) {
    const auto start = std::chrono::steady_clock::now();
    const auto out = run(kernel, {.tensors = {ref(a, {n, n}), ref(b, {n, n}), ref(c, {n, n})}}, options);
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_TRUE(out);
    std::printf("check=%d bounded=%d: %.0f M element operations/s\n", options.check, options.mode == Mode::Bounded,
                static_cast<double>(out->element_operations) / s / 1e6);
  }
}

}  // namespace
}  // namespace tilewright::interp
