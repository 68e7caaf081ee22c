#include "bench/oracle/tile_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/narrow_float.h"
#include "bench/oracle/arguments.h"
#include "bench/oracle/contract.h"
#include "bench/oracle/reference_parts.h"

namespace tilewright::bench {
namespace {

/// One call: tensors as floats (doubles for wide types), and where results go.
template <typename Real>
class Run {
 public:
  Run(const Workload& workload, const TileKernel& kernel, std::span<const candidate::Tensor> tensors)
      : w_(workload), kernel_(kernel) {
    for (const candidate::Tensor& t : tensors) {
      if (t.is_output) {
        out_.push_back(&t);
        continue;
      }
      std::vector<Real> values(static_cast<size_t>(t.element_count()));
      if constexpr (std::is_same_v<Real, double>) {
        load_doubles(t.dtype, t.data, values.data(), values.size());
      } else {
        load_floats(t.dtype, t.data, values.data(), values.size());
      }
      in_.push_back(std::move(values));
    }
    rounding_ = {false, w_.dtypes};
    if (w_.operation == Operation::GemmW4) group_ = std::stoll(w_.variant.substr(1));
  }

  void gemm();
  void attention();
  void rows();
  void elements();

 private:
  bool has(Mutant mutant) const { return kernel_.mutant == mutant; }

  /// A sum after one more term; f16 when the mutant says so.
  Real add(Real sum, Real term) const {
    if (has(Mutant::Fp16Accumulation)) return f16_to_float(f16_from(static_cast<float>(sum + term)));
    return rounding_.to_sum_type(sum + term);
  }
  /// Stores one element of output `o`; rows × columns is the output as a matrix for the storing mistakes.
  void store(size_t o, int64_t row, int64_t column, int64_t rows, int64_t columns, Real value) {
    if (has(Mutant::OneRowUnwritten) && row == rows / 2) return;
    int64_t at = row * columns + column;
    if (has(Mutant::SwappedStrides)) at = column * rows + row;
    auto* to = static_cast<std::byte*>(out_[o]->data) + at * bytes(out_[o]->dtype);
    const auto wide = static_cast<double>(value);
    store_doubles(out_[o]->dtype, &wide, to, 1);
  }

  Real a(int64_t b, int64_t i, int64_t k) const;
  Real b(int64_t b, int64_t k, int64_t j) const;
  Real finish(Real sum, int64_t column) const;
  void gemm_tile(int64_t batch, int64_t i0, int64_t j0, std::vector<Real>& sums);
  void attention_row(int64_t b, int64_t h, int64_t i);
  KeyRange keys_of(const SequenceLengths& lengths, int64_t i) const;
  std::vector<Real> row_result(int64_t r);

  const Workload& w_;
  const TileKernel& kernel_;
  Arithmetic<Real> rounding_;
  std::vector<std::vector<Real>> in_;
  std::vector<const candidate::Tensor*> out_;
  int64_t group_ = 1;  ///< of gemm_w4
  Real stale_ = 0;     ///< what a row kernel forgot to clear
};

template <typename Real>
Real Run<Real>::a(int64_t batch, int64_t i, int64_t k) const {
  const int64_t m = w_.dim("M"), depth = w_.dim("K");
  const bool t = w_.operation != Operation::GemmW4 && w_.variant[0] == 't';
  return in_[0][static_cast<size_t>(batch * m * depth + (t ? k * m + i : i * depth + k))];
}

template <typename Real>
Real Run<Real>::b(int64_t batch, int64_t k, int64_t j) const {
  const int64_t n = w_.operation == Operation::Gemv ? 1 : w_.dim("N"), depth = w_.dim("K");
  if (w_.operation == Operation::GemmW4) {
    const int64_t group = group_;
    if (has(Mutant::TransposedB)) std::swap(k, j), k %= depth, j %= n;
    const auto byte = static_cast<int>(in_[1][static_cast<size_t>((j * depth + k) / 2)]);
    const Real scale = in_[2][static_cast<size_t>(j * (depth / group) + k / group)];
    return rounding_.to_input_type(static_cast<Real>((k % 2 ? byte >> 4 : byte & 15) - 8) * scale);
  }
  const bool stored_transposed = w_.operation == Operation::Gemm && w_.variant[1] == 't';
  const bool t = stored_transposed != has(Mutant::TransposedB);
  return in_[1][static_cast<size_t>(batch * depth * n + (t ? j * depth + k : k * n + j))];
}

template <typename Real>
Real Run<Real>::finish(Real sum, int64_t column) const {
  if (w_.epilogue.bias) sum += in_[2][static_cast<size_t>(column)];
  switch (w_.epilogue.activation) {
    case Epilogue::Activation::None: return sum;
    case Epilogue::Activation::Relu: return relu(sum);
    case Epilogue::Activation::Gelu: return gelu_erf(sum);
    case Epilogue::Activation::Silu: return silu(sum);
  }
  return sum;
}

template <typename Real>
void Run<Real>::gemm_tile(int64_t batch, int64_t i0, int64_t j0, std::vector<Real>& sums) {
  const int64_t m = w_.dim("M"), n = w_.operation == Operation::Gemv ? 1 : w_.dim("N"), depth = w_.dim("K");
  const int64_t tile = kernel_.tile;
  if (!has(Mutant::StaleAccumulator)) std::ranges::fill(sums, Real(0));
  const int64_t k_end = has(Mutant::LastKTileDropped) ? (depth - 1) / tile * tile : depth;
  for (int64_t k0 = 0; k0 < k_end; k0 += tile) {
    for (int64_t i = i0; i < std::min(i0 + tile, m); ++i) {
      for (int64_t k = k0; k < std::min(k0 + tile, k_end); ++k) {
        const Real left = a(batch, i, k);
        for (int64_t j = j0; j < std::min(j0 + tile, n); ++j) {
          Real& sum = sums[static_cast<size_t>((i - i0) * tile + j - j0)];
          sum = add(sum, left * b(batch, k, j));
        }
      }
    }
  }
  // Without its mask the tile is stored whole: columns beyond n land in the next row (or behind the buffer).
  const int64_t j_end = has(Mutant::EdgeMaskSkipped) ? j0 + tile : std::min(j0 + tile, n);
  for (int64_t i = i0; i < std::min(i0 + tile, m); ++i) {
    for (int64_t j = j0; j < j_end; ++j) {
      const Real sum = sums[static_cast<size_t>((i - i0) * tile + j - j0)];
      store(0, batch * m + i, j, w_.dim("B") * m, n, finish(sum, std::min(j, n - 1)));
    }
  }
}

template <typename Real>
void Run<Real>::gemm() {
  const int64_t n = w_.operation == Operation::Gemv ? 1 : w_.dim("N");
  std::vector<Real> sums(static_cast<size_t>(kernel_.tile * kernel_.tile));
  for (int64_t batch = 0; batch < w_.dim("B"); ++batch) {
    for (int64_t i = 0; i < w_.dim("M"); i += kernel_.tile) {
      for (int64_t j = 0; j < n; j += kernel_.tile) gemm_tile(batch, i, j, sums);
    }
  }
}

template <typename Real>
KeyRange Run<Real>::keys_of(const SequenceLengths& lengths, int64_t i) const {
  Mask mask = w_.mask;
  if (has(Mutant::TopLeftForBottomRight)) mask = {MaskKind::CausalTopLeft};
  KeyRange keys = visible_keys(mask, lengths, i);
  if (has(Mutant::CausalOffByOne) && i < lengths.q) {
    keys.end = std::clamp<int64_t>(keys.end + (kernel_.variant == 0 ? 1 : -1), 0, lengths.k);
    keys.begin = std::min(keys.begin, keys.end);
  }
  if (has(Mutant::LastKTileDropped)) keys.end = std::min(keys.end, (lengths.k - 1) / kernel_.tile * kernel_.tile);
  return keys;
}

/// Online softmax over tiles of keys, as tiled attention kernels do it.
template <typename Real>
void Run<Real>::attention_row(int64_t b, int64_t h, int64_t i) {
  const int64_t hq = w_.dim("HQ"), hk = w_.dim("HKV"), sq = w_.dim("SQ"), sk = w_.dim("SK"), d = w_.dim("D"),
                dv = w_.dim("DV");
  const bool inside = w_.variant == "bshd";
  const auto vector_at = [&](int64_t seq, int64_t heads, int64_t s, int64_t head) {
    return inside ? (b * seq + s) * heads + head : (b * heads + head) * seq + s;
  };
  const SequenceLengths own = w_.lengths.empty() ? SequenceLengths{sq, sk} : w_.lengths[static_cast<size_t>(b)];
  const KeyRange keys = keys_of(own, i);
  auto scale = static_cast<Real>(attention_scale(w_));
  if (has(Mutant::WrongScale)) scale = scale * scale;
  Real maximum = -std::numeric_limits<Real>::infinity(), total = has(Mutant::StaleAccumulator) ? stale_ : 0;
  std::vector<Real> out(static_cast<size_t>(dv)), p(static_cast<size_t>(kernel_.tile));
  const int64_t head_kv = h / (hq / hk);
  for (int64_t t = keys.begin / kernel_.tile * kernel_.tile; t < keys.end; t += kernel_.tile) {
    const int64_t begin = std::max(t, keys.begin), end = std::min(t + kernel_.tile, keys.end);
    Real tile_maximum = maximum;
    for (int64_t j = begin; j < end; ++j) {
      Real score = 0;
      for (int64_t x = 0; x < d; ++x) {
        const Real key =
            in_[1][static_cast<size_t>(has(Mutant::TransposedB) && sk >= d ? vector_at(sk, hk, x, head_kv) * d + j % d
                                                                           : vector_at(sk, hk, j, head_kv) * d + x)];
        score = add(score, in_[0][static_cast<size_t>(vector_at(sq, hq, i, h) * d + x)] * key);
      }
      p[static_cast<size_t>(j - t)] = score * scale;
      tile_maximum = std::max(tile_maximum, score * scale);
    }
    const Real shrink = std::isinf(maximum) ? Real(0) : std::exp(maximum - tile_maximum);
    if (!std::isinf(maximum) || !has(Mutant::StaleAccumulator)) total *= shrink;
    for (Real& x : out) x *= shrink;
    maximum = tile_maximum;
    for (int64_t j = begin; j < end; ++j) {
      const Real weight = std::exp(p[static_cast<size_t>(j - t)] - maximum);
      total += weight;
      const Real stored = rounding_.to_input_type(weight);
      for (int64_t x = 0; x < dv; ++x) {
        Real& sum = out[static_cast<size_t>(x)];
        sum = add(sum, stored * in_[2][static_cast<size_t>(vector_at(sk, hk, j, head_kv) * dv + x)]);
      }
    }
  }
  // Padding keys of the last tile taken for real ones: their scores are 0, their values are 0.
  if (has(Mutant::EdgeMaskSkipped) && keys.end == own.k && keys.end > keys.begin) {
    const int64_t padding = (kernel_.tile - own.k % kernel_.tile) % kernel_.tile;
    total += static_cast<Real>(padding) * std::exp(-maximum);
  }
  stale_ = total;
  const bool empty = keys.begin >= keys.end;
  for (int64_t x = 0; x < dv; ++x) {
    const Real value = empty ? Real(0) : out[static_cast<size_t>(x)] / total;
    store(0, vector_at(sq, hq, i, h), x, w_.dim("B") * sq * hq, dv, value);
  }
}

template <typename Real>
void Run<Real>::attention() {
  for (int64_t b = 0; b < w_.dim("B"); ++b) {
    for (int64_t h = 0; h < w_.dim("HQ"); ++h) {
      for (int64_t i = 0; i < w_.dim("SQ"); ++i) attention_row(b, h, i);
    }
  }
}

/// One row by the formula of the oracle, but summed tile by tile, and with the mistakes a row kernel can make.
template <typename Real>
std::vector<Real> Run<Real>::row_result(int64_t r) {
  const int64_t c = w_.dim("C");
  const Real* x = in_[0].data() + r * c;
  const int64_t seen = has(Mutant::LastKTileDropped) ? (c - 1) / kernel_.tile * kernel_.tile : c;
  const auto sum = [&](auto term) {
    Real total = has(Mutant::StaleAccumulator) ? stale_ : 0;
    for (int64_t t = 0; t < seen; t += kernel_.tile) {
      Real part = 0;
      for (int64_t j = t; j < std::min(t + kernel_.tile, seen); ++j) part = add(part, term(x[j]));
      total = add(total, part);
    }
    stale_ = total;
    return total;
  };
  const auto count = static_cast<Real>(c), epsilon = static_cast<Real>(kNormEpsilon);
  std::vector<Real> y(static_cast<size_t>(c));
  switch (w_.operation) {
    case Operation::Softmax: {
      const Real maximum = *std::max_element(x, x + c);
      const Real total = sum([&](Real v) { return std::exp(v - maximum); });
      for (int64_t j = 0; j < c; ++j) y[static_cast<size_t>(j)] = std::exp(x[j] - maximum) / total;
      break;
    }
    case Operation::RmsNorm: {
      const Real factor = 1 / std::sqrt(sum([](Real v) { return v * v; }) / count + epsilon);
      for (int64_t j = 0; j < c; ++j) y[static_cast<size_t>(j)] = x[j] * factor * in_[1][static_cast<size_t>(j)];
      break;
    }
    case Operation::LayerNorm: {
      const Real mean = sum([](Real v) { return v; }) / count;
      stale_ = has(Mutant::StaleAccumulator) ? stale_ : 0;
      const Real factor = 1 / std::sqrt(sum([&](Real v) { return (v - mean) * (v - mean); }) / count + epsilon);
      for (int64_t j = 0; j < c; ++j) {
        y[static_cast<size_t>(j)] =
            (x[j] - mean) * factor * in_[1][static_cast<size_t>(j)] + in_[2][static_cast<size_t>(j)];
      }
      break;
    }
    case Operation::Reduce:
      if (w_.variant == "sum") return {sum([](Real v) { return v; })};
      if (w_.variant == "mean") return {sum([](Real v) { return v; }) / count};
      if (w_.variant == "abssum") return {sum([](Real v) { return std::abs(v); })};
      if (w_.variant == "max") return {*std::max_element(x, x + seen)};
      if (w_.variant == "min") return {*std::min_element(x, x + seen)};
      if (w_.variant == "absmax")
        return {std::abs(*std::max_element(x, x + seen, [](Real p, Real q) { return std::abs(p) < std::abs(q); }))};
      return {std::accumulate(x, x + seen, Real(1), std::multiplies<>())};
    case Operation::Cumsum: {
      Real total = has(Mutant::StaleAccumulator) ? stale_ : 0;
      for (int64_t j = 0; j < c; ++j) {
        if (j < seen) total = add(total, x[j]);
        y[static_cast<size_t>(j)] = total;
      }
      stale_ = total;
      break;
    }
    case Operation::Swiglu:
      for (int64_t j = 0; j < seen; ++j)
        y[static_cast<size_t>(j)] = silu(x[j]) * in_[1][static_cast<size_t>(r * c + j)];
      break;
    default:
      for (int64_t j = 0; j < seen; ++j) y[static_cast<size_t>(j)] = x[j];
      break;
  }
  return y;
}

template <typename Real>
void Run<Real>::rows() {
  const int64_t rows = w_.dim("R"), c = w_.dim("C");
  for (int64_t r = 0; r < rows; ++r) {
    if (w_.operation == Operation::ArgReduce || w_.operation == Operation::TopK) {
      const int64_t k = w_.operation == Operation::TopK ? std::stoll(w_.variant.substr(1)) : 1;
      const int64_t seen = has(Mutant::LastKTileDropped) ? std::max(k, (c - 1) / kernel_.tile * kernel_.tile) : c;
      std::vector<int64_t> order(static_cast<size_t>(seen));
      std::iota(order.begin(), order.end(), int64_t{0});
      const bool smallest = w_.variant == "min";
      std::ranges::stable_sort(order, [&](int64_t p, int64_t q) {
        const Real xp = in_[0][static_cast<size_t>(r * c + p)], xq = in_[0][static_cast<size_t>(r * c + q)];
        return smallest ? xp < xq : xp > xq;
      });
      for (int64_t j = 0; j < k; ++j) {
        const int64_t index = order[static_cast<size_t>(j)];
        store(out_.size() - 1, r, j, rows, k, static_cast<Real>(index));
        if (out_.size() > 1) store(0, r, j, rows, k, in_[0][static_cast<size_t>(r * c + index)]);
      }
      continue;
    }
    const std::vector<Real> y = row_result(r);
    const auto width = static_cast<int64_t>(y.size());
    for (int64_t j = 0; j < width; ++j) {
      if (w_.operation == Operation::Transpose) {
        store(0, j, r, width, rows, y[static_cast<size_t>(j)]);
      } else {
        store(0, r, j, rows, width, y[static_cast<size_t>(j)]);
      }
    }
  }
}

template <typename Real>
void Run<Real>::elements() {
  const auto count = static_cast<int64_t>(in_[0].size());
  const int64_t seen = has(Mutant::LastKTileDropped) ? (count - 1) / kernel_.tile * kernel_.tile : count;
  for (int64_t i = 0; i < count; ++i) {
    const Real x = in_[0][static_cast<size_t>(i)];
    Real y = x;
    if (w_.operation == Operation::Add) y = x + in_[1][static_cast<size_t>(i)];
    if (w_.operation == Operation::Mul) y = x * in_[1][static_cast<size_t>(i)];
    if (w_.operation == Operation::Relu) y = relu(x);
    if (w_.operation == Operation::Gelu) y = w_.variant == "tanh" ? gelu_tanh(x) : gelu_erf(x);
    if (w_.operation == Operation::Silu) y = silu(x);
    if (w_.operation == Operation::Exp) y = std::exp(x);
    store(0, i, 0, count, 1, i < seen ? y : Real(0));
  }
}

template <typename Real>
void run_as(const Workload& workload, const TileKernel& kernel, std::span<const candidate::Tensor> tensors) {
  Run<Real> run(workload, kernel, tensors);
  switch (info(workload.operation).form) {
    case DimsForm::Gemm:
    case DimsForm::Gemv: return run.gemm();
    case DimsForm::Attention: return run.attention();
    case DimsForm::Rows: return run.rows();
    case DimsForm::Elements: return run.elements();
    case DimsForm::Kernel: return;  // no kernel of this file computes it
  }
}

}  // namespace

Status run_tile_kernel(const Workload& workload, const TileKernel& kernel, std::span<const candidate::Tensor> tensors) {
  const bool wide = workload.dtypes.acc == DType::F64 || is_int(workload.dtypes.acc);
  wide ? run_as<double>(workload, kernel, tensors) : run_as<float>(workload, kernel, tensors);
  return {};
}

}  // namespace tilewright::bench
