#include <algorithm>
#include <limits>

#include "bench/oracle/contract.h"
#include "bench/oracle/parallel.h"
#include "bench/oracle/reference_parts.h"

namespace tilewright::bench {
namespace {

/// Where the vector of (batch, position, head) starts, in elements.
struct Layout {
  int64_t sequence, heads, width;
  bool heads_inside;  // bshd: position before head
  int64_t at(int64_t b, int64_t s, int64_t h) const {
    return (heads_inside ? (b * sequence + s) * heads + h : (b * heads + h) * sequence + s) * width;
  }
};

template <typename Real>
struct Attention {
  const Evaluation<Real>& e;
  Layout q, k, v, o;
  int64_t heads_per_kv;
  Real scale;

  SequenceLengths lengths(int64_t b) const {
    const Workload& w = e.workload;
    return w.lengths.empty() ? SequenceLengths{w.dim("SQ"), w.dim("SK")} : w.lengths[static_cast<size_t>(b)];
  }

  /// Eight partial sums, so that the compiler can use vectors without reassociating.
  Real dot(const Real* a, const Real* b) const {
    Real sum[8] = {};
    int64_t d = 0;
    for (; d + 8 <= q.width; d += 8) {
      for (int64_t l = 0; l < 8; ++l) sum[l] += a[d + l] * b[d + l];
    }
    for (; d < q.width; ++d) sum[0] += a[d] * b[d];
    return e.arithmetic.to_sum_type(((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
  }

  void row(int64_t b, int64_t i, int64_t h, Real* out) const {
    std::fill_n(out, o.width, Real(0));
    const KeyRange keys = visible_keys(e.workload.mask, lengths(b), i);
    if (keys.begin == keys.end) return;
    const int64_t hk = h / heads_per_kv;
    const Real* query = e.inputs[0].data() + q.at(b, i, h);
    std::vector<Real> p(static_cast<size_t>(keys.end - keys.begin));
    Real maximum = -std::numeric_limits<Real>::infinity();
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      const Real score = dot(query, e.inputs[1].data() + k.at(b, j, hk)) * scale;
      p[static_cast<size_t>(j - keys.begin)] = score;
      if (!(score <= maximum)) maximum = score;  // a NaN becomes and stays the maximum
    }
    Real total = 0;
    for (Real& x : p) {
      x = std::exp(x - maximum);
      total += x;
    }
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      const Real weight = e.arithmetic.to_input_type(p[static_cast<size_t>(j - keys.begin)]);
      const Real* value = e.inputs[2].data() + v.at(b, j, hk);
      for (int64_t d = 0; d < o.width; ++d) out[d] += weight * value[d];
    }
    for (int64_t d = 0; d < o.width; ++d) out[d] /= total;
  }
};

}  // namespace

template <typename Real>
void evaluate_attention(Evaluation<Real>& e) {
  const Workload& w = e.workload;
  const bool inside = w.variant == "bshd";
  const int64_t hq = w.dim("HQ"), hk = w.dim("HKV"), sq = w.dim("SQ"), sk = w.dim("SK");
  const Attention<Real> attention{e,
                                  {sq, hq, w.dim("D"), inside},
                                  {sk, hk, w.dim("D"), inside},
                                  {sk, hk, w.dim("DV"), inside},
                                  {sq, hq, w.dim("DV"), inside},
                                  hk ? hq / hk : 1,
                                  static_cast<Real>(attention_scale(w))};
  const int64_t width = attention.o.width;
  const int64_t rows = width ? static_cast<int64_t>(e.outputs[0].size()) / width : 0;
  for_each_range(rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t n = e.row(r);  // rows of O in storage order
      const int64_t b = n / (hq * sq), rest = n % (hq * sq);
      const int64_t i = inside ? rest / hq : rest % sq, h = inside ? rest % hq : rest / sq;
      attention.row(b, i, h, e.outputs[0].data() + r * width);
    }
  });
}

template void evaluate_attention(Evaluation<double>& e);
template void evaluate_attention(Evaluation<float>& e);

}  // namespace tilewright::bench
