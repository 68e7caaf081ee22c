#include <algorithm>

#include "interp/bounded.h"
#include "interp/lane_ops.h"
#include "interp/reductions.h"
#include "interp/scalar.h"

namespace tilewright::interp {
namespace {

/// Row-major rows × columns of `from`, transposed when it is stored the other way round.
template <typename To, typename From>
std::vector<To> matrix(const std::vector<From>& from, int64_t rows, int64_t columns, bool transposed) {
  std::vector<To> out(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      out[static_cast<size_t>(i * columns + j)] =
          static_cast<To>(from[static_cast<size_t>(transposed ? j * rows + i : i * columns + j)]);
    }
  }
  return out;
}

template <typename T>
void multiply_add(const std::vector<T>& a, const std::vector<T>& b, std::vector<T>& c, const GemmShape& s) {
  for (int64_t i = 0; i < s.m; ++i) {
    T* row = c.data() + i * s.n;
    for (int64_t k = 0; k < s.k; ++k) {
      const T x = a[static_cast<size_t>(i * s.k + k)];
      const T* y = b.data() + k * s.n;
      for (int64_t j = 0; j < s.n; ++j) row[j] += x * y[j];
    }
  }
}

template <typename T>
void gemm_real(const Column& a, const Column& b, const GemmShape& s, Column& acc) {
  std::vector<T> c(acc.real.begin(), acc.real.end());
  multiply_add(matrix<T>(a.real, s.m, s.k, s.transpose_a), matrix<T>(b.real, s.k, s.n, s.transpose_b), c, s);
  std::copy(c.begin(), c.end(), acc.real.begin());
}

void gemm_integer(const Column& a, const Column& b, const GemmShape& s, Column& acc) {
  std::vector<uint64_t> c(acc.integer.begin(), acc.integer.end());
  multiply_add(matrix<uint64_t>(a.integer, s.m, s.k, s.transpose_a),
               matrix<uint64_t>(b.integer, s.k, s.n, s.transpose_b), c, s);
  for (size_t i = 0; i < c.size(); ++i) acc.integer[i] = wrap(acc.dtype, static_cast<int64_t>(c[i]));
  const auto column_taint = [&](const Column& x) { return std::ranges::find(x.taint, 1) != x.taint.end(); };
  if (column_taint(a) || column_taint(b)) acc.taint.assign(c.size(), 1);
}

std::vector<double> bounds(const Column& x) {
  return x.bound.empty() ? std::vector<double>(static_cast<size_t>(x.lanes), 0) : x.bound;
}

/// The error of products of eight-bit floats, which matrix units sum in fewer bits than f32 has: Hopper aligns 32
/// products and the accumulator to the largest of them and cuts each off 13 bits below its leading one. Measured
/// (results/h200/README.md, "Eight-bit products"): at most 2.4 units of 2^-13 of the largest addend are lost in a step
/// of 32 products, on average over the steps of a sum; 8 are allowed here (33, one of every addend, would be the
/// worst).
class EightBitError {
 public:
  static bool applies(DType a, DType b) { return bits(a) == 8 && bits(b) == 8 && is_float(a) && is_float(b); }
  EightBitError(int64_t columns, const double* sums)
      : sums_(sums), largest_(static_cast<size_t>(columns)), error_(static_cast<size_t>(columns)) {
    begin_step();
  }
  /// After |x·y| was added to the sum of column j.
  void add(int64_t j, double product) {
    double& m = largest_[static_cast<size_t>(j)];
    m = std::max({m, product, std::fabs(sums_[j])});
  }
  void end_product() {
    if (++products_ % kProducts == 0) end_step();
  }
  double error(int64_t j) const {
    const double open = products_ % kProducts == 0 ? 0 : kLoss * largest_[static_cast<size_t>(j)];
    return error_[static_cast<size_t>(j)] + open;
  }

 private:
  static constexpr int kProducts = 32;
  static constexpr double kLoss = 8 * 0x1p-13;

  void begin_step() {
    for (size_t j = 0; j < largest_.size(); ++j) largest_[j] = std::fabs(sums_[j]) + error_[j];
  }
  void end_step() {
    for (size_t j = 0; j < largest_.size(); ++j) error_[j] += kLoss * largest_[j];
    begin_step();
  }

  const double* sums_;
  std::vector<double> largest_, error_;
  int64_t products_ = 0;
};

/// Values, Σ|a||b| and the spread of the operands' bounds, then γ_{k+1}.
void gemm_bounded(const Column& a, const Column& b, const GemmShape& s, Column& acc) {
  const auto va = matrix<double>(a.real, s.m, s.k, s.transpose_a), vb = matrix<double>(b.real, s.k, s.n, s.transpose_b);
  const auto ea = matrix<double>(bounds(a), s.m, s.k, s.transpose_a),
             eb = matrix<double>(bounds(b), s.k, s.n, s.transpose_b);
  const Precision p = Precision::of(acc.dtype);
  const double terms = static_cast<double>(s.k + 1) * p.u;
  const double gamma = terms < 1 ? terms / (1 - terms) : kUnknown;
  const bool is_eight_bit = EightBitError::applies(a.dtype, b.dtype);
  std::vector<double> magnitude(static_cast<size_t>(s.n)), spread(static_cast<size_t>(s.n));
  for (int64_t i = 0; i < s.m; ++i) {
    double* row = acc.real.data() + i * s.n;
    for (int64_t j = 0; j < s.n; ++j) {
      magnitude[static_cast<size_t>(j)] = std::fabs(row[j]);
      spread[static_cast<size_t>(j)] = acc.bound[static_cast<size_t>(i * s.n + j)];
    }
    EightBitError lost(is_eight_bit ? s.n : 0, row);
    for (int64_t k = 0; k < s.k; ++k) {
      const double x = va[static_cast<size_t>(i * s.k + k)], e = ea[static_cast<size_t>(i * s.k + k)],
                   ax = std::fabs(x);
      const double* y = vb.data() + k * s.n;
      const double* f = eb.data() + k * s.n;
      for (int64_t j = 0; j < s.n; ++j) {
        const double ay = std::fabs(y[j]);
        row[j] += x * y[j];
        magnitude[static_cast<size_t>(j)] += ax * ay;
        spread[static_cast<size_t>(j)] += (e > 0 || f[j] > 0) ? ax * f[j] + e * ay + e * f[j] : 0;
        if (is_eight_bit) lost.add(j, ax * ay);
      }
      if (is_eight_bit) lost.end_product();
    }
    for (int64_t j = 0; j < s.n; ++j) {
      const double m = magnitude[static_cast<size_t>(j)];
      const double d = spread[static_cast<size_t>(j)] + (is_eight_bit && m > 0 ? lost.error(j) : 0);
      double& bound = acc.bound[static_cast<size_t>(i * s.n + j)];
      if (!std::isfinite(row[j])) {
        bound = d > 0 || std::isnan(d) ? kUnknown : 0;
      } else if (m == 0 && d == 0) {
        bound = 0;
      } else if (!(m + d <= p.largest)) {
        bound = kUnknown;
      } else {
        bound = settle(row[j], d + gamma * (m + d), p, 0).e;
      }
    }
  }
}

}  // namespace

void gemm(const Column& a, const Column& b, const Column* joined, const GemmShape& shape, DType to, Mode mode,
          Column& out) {
  Column acc;
  const DType type = compute_type(to);
  if (joined) {
    cast(*joined, type, mode, acc);
  } else {
    acc.reset(type, shape.m * shape.n);
    std::fill(acc.real.begin(), acc.real.end(), 0.0);
    std::fill(acc.integer.begin(), acc.integer.end(), 0);
  }
  if (!acc.is_real()) {
    gemm_integer(a, b, shape, acc);
  } else if (mode == Mode::Bounded) {
    if (acc.bound.empty()) acc.bound.assign(static_cast<size_t>(acc.lanes), 0);
    gemm_bounded(a, b, shape, acc);
  } else if (type == DType::F64) {
    gemm_real<double>(a, b, shape, acc);
  } else {
    gemm_real<float>(a, b, shape, acc);
  }
  cast(acc, to, mode, out);
}

}  // namespace tilewright::interp
