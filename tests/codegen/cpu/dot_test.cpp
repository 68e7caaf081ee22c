// Exact products of i8 over the whole range of values: the plan's dot products against plain sums, on the instruction
// this machine has and on the one every x86-64-v3 machine has.
#include <random>

#include "codegen/cpu/run_plan.h"
#include "ir/builder.h"
#include "target/cpu_dot.h"

namespace tilewright::codegen {
namespace {

using ir::Index;
using ir::MemorySpace;
using ir::Value;
using ir::View;

struct Shape {
  int64_t m, n, k;
  bool transpose_b = false;
  bool shared_rows = false;  ///< A's tile is written by the kernel, so that it stays a tile
};

ir::Kernel matmul_i8(const Shape& s) {
  constexpr int64_t kM = 16, kN = 32, kK = 8;
  ir::Kernel kernel;
  kernel.name = "matmul_i8";
  ir::Builder b(kernel);
  const auto dim = [&](std::string name) {
    Value* v = kernel.new_value(ir::Type::scalar(DType::I64), name);
    kernel.dimensions.push_back({std::move(name), v, {}});
    return kernel.indices().symbol(v);
  };
  const Index M = dim("M"), N = dim("N"), K = dim("K");
  const auto tensor = [&](std::string name, DType dtype, std::vector<Index> shape, ir::Direction direction) {
    Value* v = kernel.new_value(ir::Type::buffer(MemorySpace::Global, dtype, std::move(shape)), std::move(name));
    kernel.tensors.push_back({v, direction, false, false, {}});
    return v;
  };
  Value* A = tensor("A", DType::I8, {M, K}, ir::Direction::In);
  Value* B =
      tensor("B", DType::I8, s.transpose_b ? std::vector<Index>{N, K} : std::vector<Index>{K, N}, ir::Direction::In);
  Value* C = tensor("C", DType::I32, {M, N}, ir::Direction::Out);
  const auto tile = [&](Value* buffer, Index row, int64_t rows, Index column, int64_t columns) {
    return View{buffer, {{row, b.constant_index(rows), true}, {column, b.constant_index(columns), true}}};
  };
  b.grid({.extents = {ceildiv(N, kN), ceildiv(M, kM)}, .threads = 64}, [&](const std::vector<Value*>& at) {
    const Index x = b.symbol(at[0]) * kN, y = b.symbol(at[1]) * kM;
    Value* A_s = b.alloc(MemorySpace::Shared, DType::I8, {kM, kK}, "A_s");
    Value* B_s = b.alloc(MemorySpace::Shared, DType::I8,
                         s.transpose_b ? std::vector<int64_t>{kN, kK} : std::vector<int64_t>{kK, kN}, "B_s");
    Value* acc = b.alloc(MemorySpace::Fragment, DType::I32, {kM, kN}, "acc");
    b.fill(b.whole(acc), b.integer(DType::I32, 0));
    b.pipelined(ceildiv(K, kK), 2, [&](const std::vector<Value*>& v) {
      const Index k = b.symbol(v[0]) * kK;
      b.copy(tile(A, y, kM, k, kK), b.whole(A_s));
      if (s.shared_rows) {
        b.parallel({b.constant_index(kM), b.constant_index(kK)}, [&](const std::vector<Value*>& ij) {
          const std::vector<Index> e{b.symbol(ij[0]), b.symbol(ij[1])};
          b.store(A_s, e, b.load(A_s, e));
          b.yield({});
        });
      }
      b.copy(s.transpose_b ? tile(B, x, kN, k, kK) : tile(B, k, kK, x, kN), b.whole(B_s));
      b.gemm({.a = b.whole(A_s), .b = b.whole(B_s), .c = b.whole(acc), .transpose_b = s.transpose_b});
      b.yield({});
    });
    b.copy(b.whole(acc), tile(C, y, kM, x, kN));
    b.yield({});
  });
  return kernel;
}

/// The name of the instruction the plan chose, or nothing.
std::string instruction(const plan::cpu::CpuPlan& plan) {
  for (const plan::cpu::Fact& fact : plan.facts) {
    if (fact.what == "gemm instruction") return fact.why.substr(0, fact.why.find(':'));
  }
  return "";
}

void check(const Shape& s, const target::Cpu& cpu, uint32_t seed) {
  SCOPED_TRACE(testing::Message() << s.m << "x" << s.n << "x" << s.k << (s.transpose_b ? " transposed" : "")
                                  << (s.shared_rows ? " from a tile" : "") << " on " << cpu.name << ", seed " << seed);
  PlannedKernel kernel(matmul_i8(s), {}, cpu);
  // A tile's depth may exceed what B has: then the plan multiplies element by element.
  EXPECT_EQ(instruction(kernel.plan()), s.shared_rows ? "" : target::choose_dot(cpu)->name);
  std::mt19937 random(seed);
  std::vector<int8_t> a(static_cast<size_t>(s.m * s.k)), b(static_cast<size_t>(s.k * s.n));
  for (int8_t& v : a) v = static_cast<int8_t>(random());
  for (int8_t& v : b) v = static_cast<int8_t>(random());
  std::fill_n(a.begin(), std::min<size_t>(a.size(), 16), int8_t{-128});
  std::fill_n(b.begin(), std::min<size_t>(b.size(), 16), int8_t{-128});
  std::vector<int32_t> c(static_cast<size_t>(s.m * s.n), 77);
  const std::vector<int64_t> b_shape = s.transpose_b ? std::vector<int64_t>{s.n, s.k} : std::vector<int64_t>{s.k, s.n};
  kernel.run({{a.data(), {s.m, s.k}}, {b.data(), b_shape}, {c.data(), {s.m, s.n}}});
  int wrong = 0;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      int32_t sum = 0;
      for (int64_t k = 0; k < s.k; ++k)
        sum += a[static_cast<size_t>(i * s.k + k)] * b[static_cast<size_t>(s.transpose_b ? j * s.k + k : k * s.n + j)];
      const int32_t got = c[static_cast<size_t>(i * s.n + j)];
      if (got != sum && ++wrong < 4) ADD_FAILURE() << "C[" << i << ", " << j << "] = " << got << ", expected " << sum;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Dot, ProductsOfBytesAreExactAtEveryExtent) {
  uint32_t seed = 1;
  for (const char* name : {"host", "x86-64-v3", "x86-64-v4"}) {
    const target::Cpu cpu = *target::parse_cpu(name);
    for (const Shape& s :
         {Shape{1, 1, 1}, Shape{3, 5, 7}, Shape{17, 33, 65}, Shape{40, 70, 2}, Shape{6, 64, 4}, Shape{5, 9, 0},
          Shape{33, 31, 2051}, Shape{19, 40, 30, true}, Shape{18, 20, 37, false, true}}) {
      check(s, cpu, seed++);
    }
  }
}

}  // namespace
}  // namespace tilewright::codegen
