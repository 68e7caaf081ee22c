// Small tile kernels through the CPU planner and code generation, against plain loops. Data are small integers, so that
// every order of summation gives the same bits.
#include <random>

#include "codegen/cpu/run_plan.h"
#include "ir/builder.h"

namespace tilewright::codegen {
namespace {

using ir::Builder;
using ir::Direction;
using ir::Index;
using ir::Kernel;
using ir::MemorySpace;
using ir::Value;
using ir::View;

/// Dimensions and tensors of a kernel under construction.
struct Source {
  Kernel kernel;
  Builder b{kernel};
  Index dim(std::string name, std::optional<int64_t> constant = {}) {
    Value* v = kernel.new_value(ir::Type::scalar(DType::I64), name);
    kernel.dimensions.push_back({std::move(name), v, constant});
    return kernel.indices().symbol(v);
  }
  Value* tensor(std::string name, DType dtype, std::vector<Index> shape, Direction direction) {
    Value* v = kernel.new_value(ir::Type::buffer(MemorySpace::Global, dtype, std::move(shape)), std::move(name));
    kernel.tensors.push_back({v, direction, false, false, {}});
    return v;
  }
  Index n(int64_t v) { return b.constant_index(v); }
  View tile(Value* buffer, std::vector<std::pair<Index, int64_t>> slices) {
    View view{.buffer = buffer};
    for (auto& [start, extent] : slices) view.slices.push_back({start, n(extent), true});
    return view;
  }
};

struct MatmulShape {
  int64_t m, n, k;
  int64_t block_m, block_n, block_k;
  bool transpose_b = false;
};

/// C = relu(A · B), as the language's first example.
Kernel matmul_relu(const MatmulShape& s, DType in = DType::F32, DType out = DType::F32, DType acc_type = DType::F32) {
  Source k;
  k.kernel.name = "matmul_relu";
  const Index M = k.dim("M"), N = k.dim("N"), K = k.dim("K");
  Value* A = k.tensor("A", in, {M, K}, Direction::In);
  Value* B = k.tensor("B", in, s.transpose_b ? std::vector<Index>{N, K} : std::vector<Index>{K, N}, Direction::In);
  Value* C = k.tensor("C", out, {M, N}, Direction::Out);
  k.b.grid(
      {.extents = {ceildiv(N, s.block_n), ceildiv(M, s.block_m)}, .threads = 256}, [&](const std::vector<Value*>& at) {
        const Index bx = k.b.symbol(at[0]), by = k.b.symbol(at[1]);
        Value* A_s = k.b.alloc(MemorySpace::Shared, in, {s.block_m, s.block_k}, "A_s");
        Value* B_s = k.b.alloc(
            MemorySpace::Shared, in,
            s.transpose_b ? std::vector<int64_t>{s.block_n, s.block_k} : std::vector<int64_t>{s.block_k, s.block_n},
            "B_s");
        Value* acc = k.b.alloc(MemorySpace::Fragment, acc_type, {s.block_m, s.block_n}, "acc");
        k.b.fill(k.b.whole(acc), is_float(acc_type) ? k.b.real(acc_type, 0) : k.b.integer(acc_type, 0));
        k.b.pipelined(ceildiv(K, s.block_k), 3, [&](const std::vector<Value*>& kk) {
          const Index k0 = k.b.symbol(kk[0]) * s.block_k;
          k.b.copy(k.tile(A, {{by * s.block_m, s.block_m}, {k0, s.block_k}}), k.b.whole(A_s));
          if (s.transpose_b)
            k.b.copy(k.tile(B, {{bx * s.block_n, s.block_n}, {k0, s.block_k}}), k.b.whole(B_s));
          else
            k.b.copy(k.tile(B, {{k0, s.block_k}, {bx * s.block_n, s.block_n}}), k.b.whole(B_s));
          k.b.gemm({.a = k.b.whole(A_s), .b = k.b.whole(B_s), .c = k.b.whole(acc), .transpose_b = s.transpose_b});
          k.b.yield({});
        });
        k.b.parallel({k.n(s.block_m), k.n(s.block_n)}, [&](const std::vector<Value*>& ij) {
          const std::vector<Index> e{k.b.symbol(ij[0]), k.b.symbol(ij[1])};
          Value* zero = is_float(acc_type) ? k.b.real(acc_type, 0) : k.b.integer(acc_type, 0);
          k.b.store(acc, e, k.b.binary(ir::BinaryOp::Max, k.b.load(acc, e), zero));
          k.b.yield({});
        });
        k.b.copy(k.b.whole(acc), k.tile(C, {{by * s.block_m, s.block_m}, {bx * s.block_n, s.block_n}}));
        k.b.yield({});
      });
  return std::move(k.kernel);
}

template <typename T>
std::vector<T> small_integers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> out(count);
  for (T& v : out) v = static_cast<T>(static_cast<int>(random() % 9) - 4);
  return out;
}

void check_matmul(const MatmulShape& s, const plan::cpu::Options& options = {},
                  const target::Cpu& cpu = target::host_cpu()) {
  SCOPED_TRACE(testing::Message() << s.m << "x" << s.n << "x" << s.k << " tile " << s.block_m << "x" << s.block_n << "x"
                                  << s.block_k << (s.transpose_b ? " transposed" : ""));
  PlannedKernel kernel(matmul_relu(s), options, cpu);
  auto a = small_integers<float>(static_cast<size_t>(s.m * s.k), 1),
       b = small_integers<float>(static_cast<size_t>(s.k * s.n), 2);
  std::vector<float> c(static_cast<size_t>(s.m * s.n) + 64, 77.0F);
  kernel.run({{a.data(), {s.m, s.k}},
              {b.data(), s.transpose_b ? std::vector<int64_t>{s.n, s.k} : std::vector<int64_t>{s.k, s.n}},
              {c.data(), {s.m, s.n}}});
  int wrong = 0;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < s.k; ++k)
        sum += a[static_cast<size_t>(i * s.k + k)] * b[static_cast<size_t>(s.transpose_b ? j * s.k + k : k * s.n + j)];
      const float got = c[static_cast<size_t>(i * s.n + j)], want = std::max(sum, 0.0F);
      if (got != want && ++wrong < 4) ADD_FAILURE() << "C[" << i << ", " << j << "] = " << got << ", expected " << want;
    }
  }
  EXPECT_EQ(wrong, 0);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(c[static_cast<size_t>(s.m * s.n) + i], 77.0F) << "written past the end";
}

TEST(PlanRun, MatmulAtOddExtents) {
  for (const MatmulShape& s :
       {MatmulShape{64, 64, 64, 32, 32, 32}, MatmulShape{1, 1, 1, 16, 16, 16}, MatmulShape{37, 53, 29, 16, 32, 8},
        MatmulShape{33, 31, 17, 48, 64, 32}, MatmulShape{127, 33, 65, 144, 256, 64}, MatmulShape{5, 7, 0, 4, 8, 8},
        MatmulShape{3, 5, 7, 4, 512, 64}, MatmulShape{130, 70, 300, 48, 64, 128}}) {
    check_matmul(s);
    MatmulShape t = s;
    t.transpose_b = true;
    check_matmul(t);
  }
}

TEST(PlanRun, MatmulOnNarrowerVectors) {
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    SCOPED_TRACE(name);
    const auto cpu = target::parse_cpu(name);
    ASSERT_TRUE(cpu.has_value());
    check_matmul({37, 53, 29, 16, 32, 8}, {}, *cpu);
    check_matmul({127, 33, 65, 48, 64, 32, true}, {}, *cpu);
  }
}

/// Y = (X - rowmax(X)) with its row sums, over any width: copies, a reduction, element-wise work and a second
/// reduction.
Kernel shifted_rows(int64_t rows, int64_t columns) {
  Source k;
  k.kernel.name = "shifted_rows";
  const Index R = k.dim("R"), C = k.dim("C");
  Value* X = k.tensor("X", DType::F32, {R, C}, Direction::In);
  Value* Y = k.tensor("Y", DType::F32, {R, C}, Direction::Out);
  Value* L = k.tensor("L", DType::F32, {R}, Direction::Out);
  k.b.grid({.extents = {ceildiv(R, rows)}, .threads = 64}, [&](const std::vector<Value*>& at) {
    const Index r = k.b.symbol(at[0]) * rows;
    Value* x = k.b.alloc(MemorySpace::Fragment, DType::F32, {rows, columns}, "x");
    Value* copy = k.b.alloc(MemorySpace::Fragment, DType::F32, {rows, columns}, "copy");
    Value* m = k.b.alloc(MemorySpace::Fragment, DType::F32, {rows}, "m");
    Value* l = k.b.alloc(MemorySpace::Fragment, DType::F32, {rows}, "l");
    const View source{X, {{r, k.n(rows), true}, {k.n(0), k.n(columns), true}}};
    const View target{Y, {{r, k.n(rows), true}, {k.n(0), k.n(columns), true}}};
    k.b.copy(source, k.b.whole(x), k.b.real(DType::F32, -9));
    k.b.reduce({.kind = ir::ReduceKind::Max, .src = k.b.whole(x), .dst = k.b.whole(m), .dim = 1});
    const auto each = [&](Value* to, auto make) {
      k.b.parallel({k.n(rows), k.n(columns)}, [&](const std::vector<Value*>& ij) {
        const std::vector<Index> e{k.b.symbol(ij[0]), k.b.symbol(ij[1])};
        k.b.store(to, e, make(e));
        k.b.yield({});
      });
    };
    each(x, [&](const std::vector<Index>& e) {
      return k.b.binary(ir::BinaryOp::Sub, k.b.load(x, e), k.b.load(m, {e[0]}));
    });
    k.b.fill(k.b.whole(l), k.b.real(DType::F32, 1));
    each(copy, [&](const std::vector<Index>& e) { return k.b.load(x, e); });
    k.b.reduce(
        {.kind = ir::ReduceKind::Sum, .src = k.b.whole(copy), .dst = k.b.whole(l), .dim = 1, .accumulate = true});
    each(x, [&](const std::vector<Index>& e) {
      return k.b.binary(ir::BinaryOp::Mul, k.b.load(copy, e), k.b.real(DType::F32, 2));
    });
    k.b.copy(k.b.whole(x), target);
    k.b.copy(k.b.whole(l), View{L, {{r, k.n(rows), true}}});
    k.b.yield({});
  });
  return std::move(k.kernel);
}

TEST(PlanRun, OnePassOverRowsEqualsSeparatePasses) {
  struct Case {
    int64_t rows, columns, block_rows, block_columns;
  };
  for (const Case& c :
       {Case{5, 37, 4, 37}, Case{8, 64, 8, 64}, Case{3, 1, 2, 1}, Case{7, 19, 1, 32}, Case{1, 16, 3, 48}}) {
    for (const bool fuse : {true, false}) {
      SCOPED_TRACE(testing::Message() << c.rows << "x" << c.columns << (fuse ? " fused" : ""));
      PlannedKernel kernel(shifted_rows(c.block_rows, c.block_columns), {.fuse = fuse, .verify = true});
      const auto count = static_cast<size_t>(c.rows * c.columns);
      auto x = small_integers<float>(count, 3);
      std::vector<float> y(count + 16, 77.0F), l(static_cast<size_t>(c.rows) + 16, 77.0F);
      kernel.run({{x.data(), {c.rows, c.columns}}, {y.data(), {c.rows, c.columns}}, {l.data(), {c.rows}}});
      for (int64_t i = 0; i < c.rows; ++i) {
        const float* row = x.data() + i * c.columns;
        float most = c.block_columns > c.columns ? -9.0F : -100.0F;
        for (int64_t j = 0; j < c.columns; ++j) most = std::max(most, row[j]);
        float sum = 1 + static_cast<float>(c.block_columns - c.columns) * (-9 - most);
        for (int64_t j = 0; j < c.columns; ++j) sum += row[j] - most;
        EXPECT_EQ(l[static_cast<size_t>(i)], sum) << "row " << i;
        for (int64_t j = 0; j < c.columns; ++j)
          EXPECT_EQ(y[static_cast<size_t>(i * c.columns + j)], 2 * (row[j] - most)) << i << ", " << j;
      }
      EXPECT_EQ(y[count], 77.0F);
      EXPECT_EQ(l[static_cast<size_t>(c.rows)], 77.0F);
    }
  }
}

}  // namespace
}  // namespace tilewright::codegen
