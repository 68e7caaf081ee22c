#include "kernels/reference_product.h"

#include <algorithm>
#include <cstring>

namespace tilewright::kernels {
namespace {

constexpr int64_t kRows = 4;
constexpr int64_t kVectorBytes = 64;

/// Four rows of A times one strip of B: 64 bytes of each of its rows, packed.
template <typename Real>
struct Strip {
  const Real* a;
  const Real* b;
  Real* c;
  int64_t k, ldc;
};

template <typename Real>
struct VectorOf {
  typedef Real type __attribute__((vector_size(kVectorBytes), aligned(8)));
};

template <typename Real>
[[gnu::always_inline]] inline void run(const Strip<Real>& s) {
  using Vector = typename VectorOf<Real>::type;
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(Real));
  Vector sum[kRows] = {};
  for (int64_t k = 0; k < s.k; ++k) {
    Vector b;
    std::memcpy(&b, s.b + k * kLanes, kVectorBytes);
    for (int64_t r = 0; r < kRows; ++r) sum[r] += s.a[r * s.k + k] * b;
  }
  for (int64_t r = 0; r < kRows; ++r) std::memcpy(s.c + r * s.ldc, &sum[r], kVectorBytes);
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void run_avx512(const Strip<double>& s) { run(s); }
[[gnu::target("avx512f")]] void run_avx512(const Strip<float>& s) { run(s); }
[[gnu::target("avx2,fma")]] void run_avx2(const Strip<double>& s) { run(s); }
[[gnu::target("avx2,fma")]] void run_avx2(const Strip<float>& s) { run(s); }
#endif
template <typename Real>
void run_plain(const Strip<Real>& s) {
  run(s);
}

template <typename Real>
auto choose() -> void (*)(const Strip<Real>&) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return run_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_avx2;
#endif
  return run_plain<Real>;
}

}  // namespace

template <typename Real>
std::vector<Real> multiply(const std::vector<Real>& a, const std::vector<Real>& b, ProductShape shape) {
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(Real));
  const auto [m, n, k] = shape;
  const int64_t rows = (m + kRows - 1) / kRows * kRows;
  std::vector<Real> padded(a), strip(static_cast<size_t>(k * kLanes)), out(static_cast<size_t>(m * n));
  padded.resize(static_cast<size_t>(rows * k));
  const auto step = choose<Real>();
  Real tile[kRows * kLanes];
  for (int64_t j = 0; j < n; j += kLanes) {
    const int64_t width = std::min(kLanes, n - j);
    for (int64_t p = 0; p < k; ++p) std::copy_n(b.begin() + p * n + j, width, strip.begin() + p * kLanes);
    for (int64_t i = 0; i < m; i += kRows) {
      step({padded.data() + i * k, strip.data(), tile, k, kLanes});
      for (int64_t r = 0; r < std::min(kRows, m - i); ++r)
        std::copy_n(tile + r * kLanes, width, out.begin() + (i + r) * n + j);
    }
  }
  return out;
}

template std::vector<double> multiply(const std::vector<double>&, const std::vector<double>&, ProductShape);
template std::vector<float> multiply(const std::vector<float>&, const std::vector<float>&, ProductShape);

}  // namespace tilewright::kernels
