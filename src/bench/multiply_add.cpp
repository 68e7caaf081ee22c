#include "bench/multiply_add.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewright::bench {
namespace {

// Twelve independent chains hide the latency of a fused multiply-add on every core of the last decade.
#if defined(__x86_64__)
__attribute__((target("avx512f"), noinline)) double multiply_add_512(int64_t rounds) {
  __m512 x[12];
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) x[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999F), b = _mm512_set1_ps(1e-3F);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (auto& v : x) v = _mm512_fmadd_ps(v, a, b);
  }
  float out[16];
  double sum = 0;
#pragma GCC unroll 12
  for (auto& v : x) {
    _mm512_storeu_ps(out, v);
    sum += static_cast<double>(out[0]);
  }
  return sum;
}
__attribute__((target("avx2,fma"), noinline)) double multiply_add_256(int64_t rounds) {
  __m256 x[12];
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) x[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999F), b = _mm256_set1_ps(1e-3F);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (auto& v : x) v = _mm256_fmadd_ps(v, a, b);
  }
  float out[8];
  double sum = 0;
#pragma GCC unroll 12
  for (auto& v : x) {
    _mm256_storeu_ps(out, v);
    sum += static_cast<double>(out[0]);
  }
  return sum;
}
#endif

double multiply_add_plain(int64_t rounds) {
  float x[48];
  for (int i = 0; i < 48; ++i) x[i] = static_cast<float>(i);
  for (int64_t r = 0; r < rounds; ++r) {
    for (float& v : x) v = v * 0.999F + 1e-3F;
  }
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v);
  return sum;
}

}  // namespace

MultiplyAdd best_multiply_add() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_512, 12.0 * 16 * 2};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {multiply_add_256, 12.0 * 8 * 2};
#endif
  return {multiply_add_plain, 48.0 * 2};
}

}  // namespace tilewright::bench
