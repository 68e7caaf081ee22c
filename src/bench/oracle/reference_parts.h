// The operators behind reference.h, each written once for float64 and for the declared types. Private to the oracle.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/narrow_float.h"
#include "base/tensor_file.h"
#include "bench/oracle/reference.h"
#include "bench/oracle/workload.h"

namespace tilewright::bench {

/// How the declared types round: sums to `acc`, values kept in between to `in`. In float64 nothing is rounded.
template <typename Real>
struct Arithmetic {
  bool exact = true;  ///< float64: no rounding anywhere
  DTypes dtypes;

  Real to_input_type(Real value) const { return exact ? value : round_to(dtypes.in, value); }
  Real to_sum_type(Real value) const { return exact ? value : round_to(dtypes.acc, value); }
  bool has_narrow_sums() const { return !exact && bits(dtypes.acc) < 32 && is_float(dtypes.acc); }

  static Real round_to(DType dtype, Real value) {
    switch (dtype) {
      case DType::F16: return f16_to_float(f16_from(value));
      case DType::BF16: return bf16_to_float(bf16_from(value));
      case DType::E4M3: return e4m3_to_float(e4m3_from(value));
      case DType::E5M2: return e5m2_to_float(e5m2_from(value));
      default: return value;
    }
  }
};

/// One evaluation: inputs as Real, and the outputs being filled. `rows` are rows of the first output (empty: all).
template <typename Real>
struct Evaluation {
  const Workload& workload;
  Arithmetic<Real> arithmetic;
  std::vector<std::vector<Real>> inputs;
  std::vector<int64_t> rows;
  bool wants_magnitude = false;
  std::vector<std::vector<Real>> outputs;
  std::vector<Real> magnitude;

  /// The r-th row to compute.
  int64_t row(int64_t r) const { return rows.empty() ? r : rows[static_cast<size_t>(r)]; }
};

template <typename Real>
void evaluate_gemm(Evaluation<Real>& e);  // gemm, gemm_w4 and gemv
template <typename Real>
void evaluate_attention(Evaluation<Real>& e);
template <typename Real>
void evaluate_rows(Evaluation<Real>& e);
template <typename Real>
void evaluate_elements(Evaluation<Real>& e);

template <typename Real>
Real relu(Real x) {
  return x < 0 ? Real(0) : x;  // NaN stays NaN
}
template <typename Real>
Real gelu_erf(Real x) {
  return Real(0.5) * x * std::erfc(-x * Real(0.70710678118654752440));
}
template <typename Real>
Real gelu_tanh(Real x) {
  const Real inner = Real(0.79788456080286535588) * (x + Real(0.044715) * x * x * x);
  return Real(0.5) * x * (1 + std::tanh(inner));
}
template <typename Real>
Real silu(Real x) {
  return x / (1 + std::exp(-x));
}

}  // namespace tilewright::bench
