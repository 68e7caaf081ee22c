// OpenBLAS or BLIS behind their C interface, opened at run time: matrix products for candidates and for models.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "adapters/rival/shared_object.h"
#include "base/diagnostic.h"

namespace tilewright::adapters {

enum class BlasKind : uint8_t { OpenBlas, Blis };

/// One row-major product C[m×n] = op(A) · op(B) + beta·C with leading dimensions in elements.
template <typename Real>
struct BlasProduct {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  const Real* a = nullptr;
  int64_t lda = 0;
  const Real* b = nullptr;
  int64_t ldb = 0;
  Real beta = 0;
  Real* c = nullptr;
  int64_t ldc = 0;
};

class Blas {
 public:
  /// `path` empty: the newest found, the PyPI package before the system's. E3204 says how to install it.
  static Result<std::shared_ptr<const Blas>> open(BlasKind kind, const std::string& path, const std::string& python);

  void multiply(const BlasProduct<float>& product) const;
  void multiply(const BlasProduct<double>& product) const;
  /// y[m] = op(A) · x.
  void multiply_vector(bool transpose, int64_t m, int64_t k, const float* a, const float* x, float* y) const;
  void set_threads(int threads) const;

  std::string name() const { return kind_ == BlasKind::OpenBlas ? "OpenBLAS" : "BLIS"; }
  std::string version() const;  ///< with the kernel it picked for this CPU
  const std::string& path() const { return library_.path(); }

 private:
  Blas(BlasKind kind, SharedObject library) : kind_(kind), library_(std::move(library)) {}
  bool resolve(const std::string& prefix);

  using Gemm = void(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  using DGemm = void(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*,
                     int);
  using Gemv = void(int, int, int, int, float, const float*, int, const float*, int, float, float*, int);

  BlasKind kind_;
  SharedObject library_;
  std::string prefix_;
  Gemm* sgemm_ = nullptr;
  DGemm* dgemm_ = nullptr;
  Gemv* sgemv_ = nullptr;
};

}  // namespace tilewright::adapters
