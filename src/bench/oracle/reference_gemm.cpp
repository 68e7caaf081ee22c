// Matrix products for the oracle. One register-tiled loop in GCC vector types, compiled for three instruction sets and
// chosen at run time, so that 1024³ in float64 with its error magnitudes takes a fraction of a second on two cores.
#include <algorithm>
#include <cstring>
#include <string>

#include "bench/oracle/parallel.h"
#include "bench/oracle/reference_parts.h"

namespace tilewright::bench {
namespace {

constexpr int64_t kTileRows = 4;
constexpr int64_t kVectorBytes = 64;

/// C[rows × width] += A[rows × k] · B[k × width] for one tile: rows ≤ 4 of a row-major A (pitch lda), one 64-byte
/// vector of columns of B and C (pitch ldb, ldc).
template <typename Real>
struct Tile {
  const Real* a;
  int64_t lda;
  const Real* b;
  int64_t ldb;
  Real* c;
  int64_t ldc;
  int64_t k;
};

template <typename Real>
struct VectorOf {
  typedef Real type __attribute__((vector_size(kVectorBytes), aligned(8)));
};

template <typename Real>
[[gnu::always_inline]] inline void run_tile(const Tile<Real>& t) {
  using Vector = typename VectorOf<Real>::type;
  Vector sum[kTileRows];
  for (int64_t r = 0; r < kTileRows; ++r) std::memcpy(&sum[r], t.c + r * t.ldc, kVectorBytes);
  for (int64_t k = 0; k < t.k; ++k) {
    Vector b;
    std::memcpy(&b, t.b + k * t.ldb, kVectorBytes);
    for (int64_t r = 0; r < kTileRows; ++r) sum[r] += t.a[r * t.lda + k] * b;
  }
  for (int64_t r = 0; r < kTileRows; ++r) std::memcpy(t.c + r * t.ldc, &sum[r], kVectorBytes);
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void run_tile_avx512(const Tile<double>& t) { run_tile(t); }
[[gnu::target("avx512f")]] void run_tile_avx512(const Tile<float>& t) { run_tile(t); }
[[gnu::target("avx2,fma")]] void run_tile_avx2(const Tile<double>& t) { run_tile(t); }
[[gnu::target("avx2,fma")]] void run_tile_avx2(const Tile<float>& t) { run_tile(t); }
#endif
template <typename Real>
void run_tile_plain(const Tile<Real>& t) {
  run_tile(t);
}

template <typename Real>
using TileFunction = void (*)(const Tile<Real>&);

template <typename Real>
TileFunction<Real> choose_tile() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return run_tile_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_tile_avx2;
#endif
  return run_tile_plain<Real>;
}

/// C = A · B of zero-padded row-major matrices: A [m × k], B [k × n] with n a whole number of vectors.
template <typename Real>
struct Product {
  const Real* a;
  const Real* b;
  Real* c;
  int64_t m, n, k;
};

template <typename Real>
void multiply(const Product<Real>& p) {
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(Real));
  constexpr int64_t kDepth = 256;
  const TileFunction<Real> tile = choose_tile<Real>();
  for_each_range(p.m, 64, [&](int64_t begin, int64_t end) {
    std::vector<Real> a_edge(static_cast<size_t>(kTileRows * p.k)), c_edge(static_cast<size_t>(kTileRows * p.n));
    for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, p.k - k0);
      for (int64_t j = 0; j < p.n; j += kLanes) {
        int64_t i = begin;
        for (; i + kTileRows <= end; i += kTileRows) {
          tile({p.a + i * p.k + k0, p.k, p.b + k0 * p.n + j, p.n, p.c + i * p.n + j, p.n, depth});
        }
        if (i == end) continue;
        const int64_t left = end - i;  // fewer than four rows: through zero-padded copies
        for (int64_t r = 0; r < left; ++r) {
          std::copy_n(p.a + (i + r) * p.k + k0, depth, a_edge.begin() + r * p.k + k0);
          std::copy_n(p.c + (i + r) * p.n + j, kLanes, c_edge.begin() + r * p.n + j);
        }
        tile({a_edge.data() + k0, p.k, p.b + k0 * p.n + j, p.n, c_edge.data() + j, p.n, depth});
        for (int64_t r = 0; r < left; ++r) std::copy_n(c_edge.begin() + r * p.n + j, kLanes, p.c + (i + r) * p.n + j);
      }
    }
  });
}

/// Sums rounded after every step, for accumulation types narrower than f32.
template <typename Real>
void multiply_narrow(const Product<Real>& p, const Arithmetic<Real>& arithmetic) {
  for_each_range(p.m, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t k = 0; k < p.k; ++k) {
        const Real a = p.a[i * p.k + k];
        for (int64_t j = 0; j < p.n; ++j) {
          Real& sum = p.c[i * p.n + j];
          sum = arithmetic.to_sum_type(sum + a * p.b[k * p.n + j]);
        }
      }
    }
  });
}

/// A as rows [m × k] for the rows asked for, B as [k × n padded]; both of one batch entry.
template <typename Real>
struct Operands {
  std::vector<Real> a, b;
};

template <typename Real>
Real w4_weight(const Evaluation<Real>& e, int64_t group, int64_t n, int64_t k) {
  const int64_t depth = e.workload.dim("K");
  const auto byte = static_cast<int>(e.inputs[1][static_cast<size_t>((n * depth + k) / 2)]);
  const int code = k % 2 ? byte >> 4 : byte & 15;
  const Real scale = e.inputs[2][static_cast<size_t>(n * (depth / group) + k / group)];
  return e.arithmetic.to_input_type(static_cast<Real>(code - 8) * scale);
}

struct Shape {
  int64_t batch, m, n, k, n_padded;
};

template <typename Real>
std::vector<Real> matrix_b(const Evaluation<Real>& e, const Shape& s, int64_t batch) {
  std::vector<Real> b(static_cast<size_t>(s.k * s.n_padded));
  const Workload& w = e.workload;
  const Real* source = e.inputs[1].data() + (w.operation == Operation::GemmW4 ? 0 : batch * s.k * s.n);
  const bool transposed = w.operation == Operation::Gemm && w.variant[1] == 't';
  const int64_t group = w.operation == Operation::GemmW4 ? std::stoll(w.variant.substr(1)) : 1;
  for_each_range(s.k, 64, [&](int64_t begin, int64_t end) {
    for (int64_t j = 0; j < s.n; ++j) {
      for (int64_t k = begin; k < end; ++k) {
        Real& to = b[static_cast<size_t>(k * s.n_padded + j)];
        if (w.operation == Operation::GemmW4) {
          to = w4_weight(e, group, j, k);
        } else {
          to = transposed ? source[j * s.k + k] : source[k * s.n + j];
        }
      }
    }
  });
  return b;
}

template <typename Real>
std::vector<Real> matrix_a(const Evaluation<Real>& e, const Shape& s, int64_t batch, std::span<const int64_t> rows) {
  const bool transposed = e.workload.operation != Operation::GemmW4 && e.workload.variant[0] == 't';
  const Real* source = e.inputs[0].data() + batch * s.m * s.k;
  std::vector<Real> a(rows.size() * static_cast<size_t>(s.k));
  for (size_t r = 0; r < rows.size(); ++r) {
    for (int64_t k = 0; k < s.k; ++k) {
      a[r * static_cast<size_t>(s.k) + static_cast<size_t>(k)] =
          transposed ? source[k * s.m + rows[r]] : source[rows[r] * s.k + k];
    }
  }
  return a;
}

template <typename Real>
Real finish(const Evaluation<Real>& e, Real sum, int64_t column) {
  const Epilogue& epilogue = e.workload.epilogue;
  if (epilogue.bias) sum += e.inputs[2][static_cast<size_t>(column)];
  switch (epilogue.activation) {
    case Epilogue::Activation::None: return sum;
    case Epilogue::Activation::Relu: return relu(sum);
    case Epilogue::Activation::Gelu: return gelu_erf(sum);
    case Epilogue::Activation::Silu: return silu(sum);
  }
  return sum;
}

/// Rows of batch entry `batch` among those asked for, as row numbers inside the entry; `first` is where they start in
/// the output.
template <typename Real>
std::vector<int64_t> rows_of_batch(const Evaluation<Real>& e, const Shape& s, int64_t batch, int64_t& first) {
  std::vector<int64_t> rows;
  first = 0;
  if (e.rows.empty()) {
    first = batch * s.m;
    for (int64_t i = 0; i < s.m; ++i) rows.push_back(i);
    return rows;
  }
  for (int64_t row : e.rows) {
    if (row / s.m < batch) ++first;
    if (row / s.m == batch) rows.push_back(row % s.m);
  }
  return rows;
}

template <typename Real>
void multiply_batch(Evaluation<Real>& e, const Shape& s, int64_t batch) {
  int64_t first = 0;
  const std::vector<int64_t> rows = rows_of_batch(e, s, batch, first);
  if (rows.empty()) return;
  const auto m = static_cast<int64_t>(rows.size());
  std::vector<Real> a = matrix_a(e, s, batch, rows), b = matrix_b(e, s, batch);
  std::vector<Real> c(static_cast<size_t>(m * s.n_padded));
  if (e.arithmetic.has_narrow_sums()) {
    multiply_narrow<Real>({a.data(), b.data(), c.data(), m, s.n_padded, s.k}, e.arithmetic);
  } else {
    multiply<Real>({a.data(), b.data(), c.data(), m, s.n_padded, s.k});
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      e.outputs[0][static_cast<size_t>((first + i) * s.n + j)] =
          finish(e, c[static_cast<size_t>(i * s.n_padded + j)], j);
    }
  }
  if (!e.wants_magnitude) return;
  for (Real& x : a) x = std::abs(x);
  for (Real& x : b) x = std::abs(x);
  std::fill(c.begin(), c.end(), Real(0));
  multiply<Real>({a.data(), b.data(), c.data(), m, s.n_padded, s.k});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      const Real bias = e.workload.epilogue.bias ? std::abs(e.inputs[2][static_cast<size_t>(j)]) : Real(0);
      e.magnitude[static_cast<size_t>((first + i) * s.n + j)] = c[static_cast<size_t>(i * s.n_padded + j)] + bias;
    }
  }
}

}  // namespace

template <typename Real>
void evaluate_gemm(Evaluation<Real>& e) {
  const Workload& w = e.workload;
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(Real));
  Shape s{w.dim("B"), w.dim("M"), w.operation == Operation::Gemv ? 1 : w.dim("N"), w.dim("K"), 0};
  s.n_padded = (s.n + kLanes - 1) / kLanes * kLanes;
  if (e.wants_magnitude) e.magnitude.assign(e.outputs[0].size(), Real(0));
  for (int64_t batch = 0; batch < s.batch; ++batch) multiply_batch(e, s, batch);
}

template void evaluate_gemm(Evaluation<double>& e);
template void evaluate_gemm(Evaluation<float>& e);

}  // namespace tilewright::bench
