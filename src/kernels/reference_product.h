// Matrix products of plain numbers for the reference evaluator: register-tiled vector code chosen at run time, so that
// a product of 1000³ in float64 takes a fraction of a second. Sums run in order of k.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewright::kernels {

struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
};

/// C[m × n] = A[m × k] · B[k × n], row-major.
template <typename Real>
std::vector<Real> multiply(const std::vector<Real>& a, const std::vector<Real>& b, ProductShape shape);

}  // namespace tilewright::kernels
