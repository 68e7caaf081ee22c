// Operators along rows and over elements, for the oracle.
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "bench/oracle/contract.h"
#include "bench/oracle/parallel.h"
#include "bench/oracle/reference_parts.h"

namespace tilewright::bench {
namespace {

template <typename Real>
struct Row {
  const Evaluation<Real>& e;
  int64_t r, c;
  const Real* x;

  Real weight(int64_t j) const { return e.inputs[1][static_cast<size_t>(j)]; }

  /// Sum of f(x_j), rounded to the sum type at every step when that is narrower than Real.
  template <typename F>
  Real sum(F f) const {
    Real total = 0;
    for (int64_t j = 0; j < c; ++j) total = e.arithmetic.to_sum_type(total + f(x[j]));
    return total;
  }
  /// The extreme value; NaN wins.
  template <typename Better>
  Real extreme(Better better, Real start) const {
    Real best = start;
    for (int64_t j = 0; j < c; ++j) {
      if (std::isnan(x[j])) return x[j];
      if (better(x[j], best)) best = x[j];
    }
    return best;
  }
};

template <typename Real>
void softmax_row(const Row<Real>& row, Real* y) {
  const Real maximum = row.extreme(std::greater<>(), -std::numeric_limits<Real>::infinity());
  for (int64_t j = 0; j < row.c; ++j) y[j] = std::exp(row.x[j] - maximum);
  Real total = 0;
  for (int64_t j = 0; j < row.c; ++j) total += y[j];
  for (int64_t j = 0; j < row.c; ++j) y[j] /= total;
}

template <typename Real>
void rms_norm_row(const Row<Real>& row, Real* y) {
  const Real mean_square = row.sum([](Real v) { return v * v; }) / static_cast<Real>(row.c);
  const Real factor = 1 / std::sqrt(mean_square + static_cast<Real>(kNormEpsilon));
  for (int64_t j = 0; j < row.c; ++j) y[j] = row.x[j] * factor * row.weight(j);
}

template <typename Real>
void layer_norm_row(const Row<Real>& row, Real* y) {
  const Real mean = row.sum([](Real v) { return v; }) / static_cast<Real>(row.c);
  const Real variance = row.sum([mean](Real v) { return (v - mean) * (v - mean); }) / static_cast<Real>(row.c);
  const Real factor = 1 / std::sqrt(variance + static_cast<Real>(kNormEpsilon));
  for (int64_t j = 0; j < row.c; ++j) {
    y[j] = (row.x[j] - mean) * factor * row.weight(j) + row.e.inputs[2][static_cast<size_t>(j)];
  }
}

template <typename Real>
Real reduce_row(const Row<Real>& row, const std::string& kind) {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  if (kind == "sum") return row.sum([](Real v) { return v; });
  if (kind == "mean") return row.sum([](Real v) { return v; }) / static_cast<Real>(row.c);
  if (kind == "abssum") return row.sum([](Real v) { return std::abs(v); });
  if (kind == "max") return row.extreme(std::greater<>(), -kInfinity);
  if (kind == "min") return row.extreme(std::less<>(), kInfinity);
  if (kind == "absmax") {
    return std::abs(row.extreme([](Real a, Real b) { return std::abs(a) > std::abs(b); }, Real(0)));
  }
  Real product = 1;
  for (int64_t j = 0; j < row.c; ++j) product *= row.x[j];
  return product;
}

/// Columns by descending value, ties to the lower column, NaN first.
template <typename Real>
std::vector<int64_t> order_of(const Row<Real>& row, int64_t k, bool largest) {
  std::vector<int64_t> order(static_cast<size_t>(row.c));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto before = [&](int64_t a, int64_t b) {
    const bool a_nan = std::isnan(row.x[a]), b_nan = std::isnan(row.x[b]);
    if (a_nan || b_nan) return a_nan && b_nan ? a < b : a_nan;
    if (row.x[a] != row.x[b]) return largest ? row.x[a] > row.x[b] : row.x[a] < row.x[b];
    return a < b;
  };
  std::partial_sort(order.begin(), order.begin() + std::min(k, row.c), order.end(), before);
  return order;
}

template <typename Real>
void top_k_row(Evaluation<Real>& e, const Row<Real>& row, int64_t r) {
  const int64_t k = std::stoll(e.workload.variant.substr(1));
  const auto order = order_of(row, k, true);
  for (int64_t j = 0; j < k; ++j) {
    e.outputs[0][static_cast<size_t>(r * k + j)] = row.x[order[static_cast<size_t>(j)]];
    e.outputs[1][static_cast<size_t>(r * k + j)] = static_cast<Real>(order[static_cast<size_t>(j)]);
  }
}

template <typename Real>
void evaluate_row(Evaluation<Real>& e, int64_t r) {
  const int64_t c = e.workload.dim("C");
  const Row<Real> row{e, r, c, e.inputs[0].data() + r * c};
  Real* y = e.outputs[0].data() + r * c;
  switch (e.workload.operation) {
    case Operation::Softmax: return softmax_row(row, y);
    case Operation::RmsNorm: return rms_norm_row(row, y);
    case Operation::LayerNorm: return layer_norm_row(row, y);
    case Operation::Reduce: e.outputs[0][static_cast<size_t>(r)] = reduce_row(row, e.workload.variant); return;
    case Operation::ArgReduce:
      if (c) e.outputs[0][static_cast<size_t>(r)] = static_cast<Real>(order_of(row, 1, e.workload.variant == "max")[0]);
      return;
    case Operation::TopK: return top_k_row(e, row, r);
    case Operation::Cumsum: {
      Real total = 0;
      for (int64_t j = 0; j < c; ++j) y[j] = total = e.arithmetic.to_sum_type(total + row.x[j]);
      return;
    }
    case Operation::Transpose:
      for (int64_t j = 0; j < c; ++j) e.outputs[0][static_cast<size_t>(j * e.workload.dim("R") + r)] = row.x[j];
      return;
    case Operation::Swiglu:
      for (int64_t j = 0; j < c; ++j) y[j] = silu(row.x[j]) * e.inputs[1][static_cast<size_t>(r * c + j)];
      return;
    default: return;
  }
}

/// Σ|x| where the output is a plain sum.
template <typename Real>
void add_magnitudes(Evaluation<Real>& e) {
  const int64_t c = e.workload.dim("C");
  const bool prefix = e.workload.operation == Operation::Cumsum, mean = e.workload.variant == "mean";
  e.magnitude.assign(e.outputs[0].size(), Real(0));
  for (int64_t r = 0; r < e.workload.dim("R"); ++r) {
    Real total = 0;
    for (int64_t j = 0; j < c; ++j) {
      total += std::abs(e.inputs[0][static_cast<size_t>(r * c + j)]);
      if (prefix) e.magnitude[static_cast<size_t>(r * c + j)] = total;
    }
    if (!prefix) e.magnitude[static_cast<size_t>(r)] = mean ? total / static_cast<Real>(c) : total;
  }
}

template <typename Real>
Real element(const Evaluation<Real>& e, size_t i) {
  const Real x = e.inputs[0][i];
  switch (e.workload.operation) {
    case Operation::Add: return x + e.inputs[1][i];
    case Operation::Mul: return x * e.inputs[1][i];
    case Operation::Relu: return relu(x);
    case Operation::Gelu: return e.workload.variant == "tanh" ? gelu_tanh(x) : gelu_erf(x);
    case Operation::Silu: return silu(x);
    case Operation::Exp: return std::exp(x);
    default: return x;
  }
}

}  // namespace

template <typename Real>
void evaluate_rows(Evaluation<Real>& e) {
  for_each_range(e.workload.dim("R"), 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) evaluate_row(e, r);
  });
  if (e.wants_magnitude) add_magnitudes(e);
}

template <typename Real>
void evaluate_elements(Evaluation<Real>& e) {
  for_each_range(static_cast<int64_t>(e.outputs[0].size()), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) e.outputs[0][static_cast<size_t>(i)] = element(e, static_cast<size_t>(i));
  });
}

template void evaluate_rows(Evaluation<double>& e);
template void evaluate_rows(Evaluation<float>& e);
template void evaluate_elements(Evaluation<double>& e);
template void evaluate_elements(Evaluation<float>& e);

}  // namespace tilewright::bench
