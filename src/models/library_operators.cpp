#include "models/library_operators.h"

#include <algorithm>
#include <cmath>

namespace tilewright::models {
namespace {

void finish_rows(const GemmCall& c) {
  if (!c.bias && c.activation == Activation::None) return;
  for (int64_t i = 0; i < c.m; ++i) {
    float* y = c.y + i * c.n;
    if (c.bias) {
      for (int64_t j = 0; j < c.n; ++j) y[j] += c.bias[j];
    }
    switch (c.activation) {
      case Activation::None: break;
      case Activation::Relu:
        for (int64_t j = 0; j < c.n; ++j) y[j] = y[j] < 0 ? 0.0f : y[j];
        break;
      case Activation::Gelu:
        for (int64_t j = 0; j < c.n; ++j) y[j] = 0.5f * y[j] * std::erfc(-y[j] * 0.70710678f);
        break;
      case Activation::Silu:
        for (int64_t j = 0; j < c.n; ++j) y[j] = y[j] / (1 + std::exp(-y[j]));
        break;
    }
  }
}

/// Softmax of the first `seen` of `columns` scores times `scale`; the rest become 0.
void softmax_row(float* s, int64_t seen, int64_t columns, float scale) {
  float maximum = -INFINITY;
  for (int64_t j = 0; j < seen; ++j) maximum = std::max(maximum, s[j] * scale);
  float total = 0;
  for (int64_t j = 0; j < seen; ++j) {
    s[j] = std::exp(s[j] * scale - maximum);
    total += s[j];
  }
  for (int64_t j = 0; j < seen; ++j) s[j] /= total;
  std::fill(s + seen, s + columns, 0.0f);
}

}  // namespace

void LibraryOperators::gemm(const GemmCall& c) {
  if (c.m == 1) {
    blas_->multiply_vector(false, c.n, c.k, c.w, c.x, c.y);
  } else {
    blas_->multiply(adapters::BlasProduct<float>{false, true, c.m, c.n, c.k, c.x, c.k, c.w, c.k, 0.0f, c.y, c.n});
  }
  finish_rows(c);
}

void LibraryOperators::attention(const AttentionCall& c) {
  const int64_t group = c.hq / c.hkv;
  const float scale = 1.0f / std::sqrt(static_cast<float>(c.d));
  // One query: the heads that share a KV head are the rows of one product. Several: one product per head.
  const int64_t rows = c.sq == 1 ? group : c.sq, products = c.sq == 1 ? c.hkv : c.hq;
  const int64_t pitch = c.sq == 1 ? c.d : c.hq * c.d;
  scores_.resize(static_cast<size_t>(rows * c.sk));
  for (int64_t p = 0; p < products; ++p) {
    const int64_t head = c.sq == 1 ? p * group : p, kv = head / group;
    blas_->multiply(adapters::BlasProduct<float>{false, true, rows, c.sk, c.d, c.q + head * c.d, pitch, c.k + kv * c.d,
                                                 c.hkv * c.d, 0.0f, scores_.data(), c.sk});
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t query = c.sq == 1 ? 0 : i;
      const int64_t seen = c.causal ? std::clamp<int64_t>(query + c.sk - c.sq + 1, 0, c.sk) : c.sk;
      softmax_row(scores_.data() + i * c.sk, seen, c.sk, scale);
    }
    blas_->multiply(adapters::BlasProduct<float>{false, false, rows, c.d, c.sk, scores_.data(), c.sk, c.v + kv * c.d,
                                                 c.hkv * c.d, 0.0f, c.o + head * c.d, pitch});
  }
}

void LibraryOperators::norm(const NormCall& c) {
  for (int64_t i = 0; i < c.rows; ++i) {
    const float* x = c.x + i * c.columns;
    float* y = c.y + i * c.columns;
    float mean = 0;
    if (c.bias) {
      for (int64_t j = 0; j < c.columns; ++j) mean += x[j];
      mean /= static_cast<float>(c.columns);
    }
    float squares = 0;
    for (int64_t j = 0; j < c.columns; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const float factor = 1 / std::sqrt(squares / static_cast<float>(c.columns) + c.epsilon);
    for (int64_t j = 0; j < c.columns; ++j) {
      y[j] = (x[j] - mean) * factor * c.weight[j] + (c.bias ? c.bias[j] : 0.0f);
    }
  }
}

void LibraryOperators::swiglu(const SwigluCall& c) {
  for (int64_t i = 0; i < c.rows * c.columns; ++i) c.y[i] = c.a[i] / (1 + std::exp(-c.a[i])) * c.b[i];
}

Result<std::unique_ptr<LibraryOperators>> open_library_operators(int threads, const std::string& python) {
  auto blas = adapters::Blas::open(adapters::BlasKind::OpenBlas, "", python);
  if (!blas) {
    auto other = adapters::Blas::open(adapters::BlasKind::Blis, "", python);
    if (!other) return std::unexpected(blas.error());
    blas = std::move(other);
  }
  (*blas)->set_threads(threads);
  return std::make_unique<LibraryOperators>(*blas);
}

}  // namespace tilewright::models
