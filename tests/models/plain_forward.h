// Forward passes in plain loops over the formulas, in any real type: float64 is the oracle, f32 stands for the
// framework (R1).
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "models/decoder.h"
#include "models/encoder.h"
#include "models/weights.h"

namespace tilewright::models {

template <typename Real>
using Matrix = std::vector<std::vector<Real>>;

template <typename Real>
Matrix<Real> linear(const Matrix<Real>& x, const float* w, const float* bias, int64_t out) {
  Matrix<Real> y(x.size(), std::vector<Real>(static_cast<size_t>(out)));
  for (size_t r = 0; r < x.size(); ++r) {
    const auto in = static_cast<int64_t>(x[r].size());
    for (int64_t j = 0; j < out; ++j) {
      Real sum = 0;
      for (int64_t k = 0; k < in; ++k) sum += x[r][static_cast<size_t>(k)] * Real(w[j * in + k]);
      y[r][static_cast<size_t>(j)] = sum + (bias ? Real(bias[j]) : Real(0));
    }
  }
  return y;
}

template <typename Real>
Matrix<Real> normed(const Matrix<Real>& x, const float* weight, const float* bias, Real epsilon) {
  Matrix<Real> y = x;
  for (auto& row : y) {
    const auto n = static_cast<Real>(row.size());
    Real mean = 0, squares = 0;
    if (bias) {
      for (Real v : row) mean += v / n;
    }
    for (Real v : row) squares += (v - mean) * (v - mean) / n;
    for (size_t j = 0; j < row.size(); ++j) {
      row[j] = (row[j] - mean) / std::sqrt(squares + epsilon) * Real(weight[j]) + (bias ? Real(bias[j]) : Real(0));
    }
  }
  return y;
}

template <typename Real>
Matrix<Real> attended(const Matrix<Real>& q, const Matrix<Real>& k, const Matrix<Real>& v, int64_t heads,
                      int64_t kv_heads, bool causal) {
  const auto d = static_cast<size_t>(q[0].size()) / static_cast<size_t>(heads);
  Matrix<Real> out(q.size(), std::vector<Real>(q[0].size()));
  for (size_t h = 0; h < static_cast<size_t>(heads); ++h) {
    const size_t g = h / static_cast<size_t>(heads / kv_heads);
    for (size_t i = 0; i < q.size(); ++i) {
      const size_t seen = causal ? i + k.size() - q.size() + 1 : k.size();
      std::vector<Real> p(seen);
      Real maximum = -INFINITY, total = 0;
      for (size_t j = 0; j < seen; ++j) {
        for (size_t x = 0; x < d; ++x) p[j] += q[i][h * d + x] * k[j][g * d + x];
        p[j] /= std::sqrt(static_cast<Real>(d));
        maximum = std::max(maximum, p[j]);
      }
      for (Real& w : p) total += w = std::exp(w - maximum);
      for (size_t j = 0; j < seen; ++j) {
        for (size_t x = 0; x < d; ++x) out[i][h * d + x] += p[j] / total * v[j][g * d + x];
      }
    }
  }
  return out;
}

template <typename Real>
void add(Matrix<Real>& x, const Matrix<Real>& y) {
  for (size_t r = 0; r < x.size(); ++r) {
    for (size_t j = 0; j < x[r].size(); ++j) x[r][j] += y[r][j];
  }
}

template <typename Real>
Matrix<Real> rotated(Matrix<Real> x, int64_t heads, double theta) {
  const size_t d = x[0].size() / static_cast<size_t>(heads);
  for (size_t r = 0; r < x.size(); ++r) {
    for (size_t h = 0; h < static_cast<size_t>(heads); ++h) {
      for (size_t i = 0; i < d / 2; ++i) {
        const Real angle = static_cast<Real>(r) *
                           static_cast<Real>(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(d)));
        const Real a = x[r][h * d + i], b = x[r][h * d + i + d / 2];
        x[r][h * d + i] = a * std::cos(angle) - b * std::sin(angle);
        x[r][h * d + i + d / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
  return x;
}

/// Logits after the whole sequence, without a cache.
template <typename Real>
std::vector<Real> decoder_logits(const DecoderConfig& c, const Weights& w, const std::vector<int64_t>& tokens) {
  const auto get = [&](const std::string& name, std::vector<int64_t> shape) { return *w.find(name, shape); };
  const int64_t q_width = c.heads * c.head_width, kv_width = c.kv_heads * c.head_width;
  Matrix<Real> x;
  const float* embedding = get("model.embed_tokens.weight", {c.vocabulary, c.width});
  for (int64_t t : tokens) x.emplace_back(embedding + t * c.width, embedding + (t + 1) * c.width);
  for (int64_t l = 0; l < c.layers; ++l) {
    const std::string at = "model.layers." + std::to_string(l) + ".";
    const auto n =
        normed<Real>(x, get(at + "input_layernorm.weight", {c.width}), nullptr, static_cast<Real>(c.norm_epsilon));
    const auto q = rotated(linear(n, get(at + "self_attn.q_proj.weight", {q_width, c.width}), nullptr, q_width),
                           c.heads, c.rope_theta);
    const auto k = rotated(linear(n, get(at + "self_attn.k_proj.weight", {kv_width, c.width}), nullptr, kv_width),
                           c.kv_heads, c.rope_theta);
    const auto v = linear(n, get(at + "self_attn.v_proj.weight", {kv_width, c.width}), nullptr, kv_width);
    add(x, linear(attended(q, k, v, c.heads, c.kv_heads, true), get(at + "self_attn.o_proj.weight", {c.width, q_width}),
                  nullptr, c.width));
    const auto f = normed<Real>(x, get(at + "post_attention_layernorm.weight", {c.width}), nullptr,
                                static_cast<Real>(c.norm_epsilon));
    auto gate = linear(f, get(at + "mlp.gate_proj.weight", {c.ffn_width, c.width}), nullptr, c.ffn_width);
    const auto up = linear(f, get(at + "mlp.up_proj.weight", {c.ffn_width, c.width}), nullptr, c.ffn_width);
    for (size_t r = 0; r < gate.size(); ++r) {
      for (size_t j = 0; j < gate[r].size(); ++j) gate[r][j] = gate[r][j] / (1 + std::exp(-gate[r][j])) * up[r][j];
    }
    add(x, linear(gate, get(at + "mlp.down_proj.weight", {c.width, c.ffn_width}), nullptr, c.width));
  }
  const Matrix<Real> last = {x.back()};
  return linear(normed<Real>(last, get("model.norm.weight", {c.width}), nullptr, static_cast<Real>(c.norm_epsilon)),
                get("lm_head.weight", {c.vocabulary, c.width}), nullptr, c.vocabulary)[0];
}

template <typename Real>
std::vector<Real> encoder_embedding(const EncoderConfig& c, const Weights& w, const std::vector<int64_t>& tokens) {
  const auto get = [&](const std::string& name, std::vector<int64_t> shape) { return *w.find(name, shape); };
  const auto dense = [&](const Matrix<Real>& x, const std::string& name, int64_t out, int64_t in) {
    return linear(x, get(name + ".weight", {out, in}), get(name + ".bias", {out}), out);
  };
  const auto norm = [&](const Matrix<Real>& x, const std::string& name) {
    return normed<Real>(x, get(name + ".weight", {c.width}), get(name + ".bias", {c.width}),
                        static_cast<Real>(c.norm_epsilon));
  };
  Matrix<Real> x(tokens.size(), std::vector<Real>(static_cast<size_t>(c.width)));
  const float* words = get("embeddings.word_embeddings.weight", {c.vocabulary, c.width});
  const float* positions = get("embeddings.position_embeddings.weight", {c.max_positions, c.width});
  const float* types = get("embeddings.token_type_embeddings.weight", {2, c.width});
  for (size_t r = 0; r < x.size(); ++r) {
    for (int64_t j = 0; j < c.width; ++j) {
      x[r][static_cast<size_t>(j)] = Real(words[tokens[r] * c.width + j]) +
                                     Real(positions[static_cast<int64_t>(r) * c.width + j]) + Real(types[j]);
    }
  }
  x = norm(x, "embeddings.LayerNorm");
  for (int64_t l = 0; l < c.layers; ++l) {
    const std::string at = "encoder.layer." + std::to_string(l) + ".";
    const auto mixed = attended(dense(x, at + "attention.self.query", c.width, c.width),
                                dense(x, at + "attention.self.key", c.width, c.width),
                                dense(x, at + "attention.self.value", c.width, c.width), c.heads, c.heads, false);
    add(x, dense(mixed, at + "attention.output.dense", c.width, c.width));
    x = norm(x, at + "attention.output.LayerNorm");
    auto wide = dense(x, at + "intermediate.dense", c.ffn_width, c.width);
    for (auto& row : wide) {
      for (Real& v : row) v = Real(0.5) * v * std::erfc(-v * Real(0.70710678118654752440));
    }
    add(x, dense(wide, at + "output.dense", c.width, c.ffn_width));
    x = norm(x, at + "output.LayerNorm");
  }
  std::vector<Real> pooled(static_cast<size_t>(c.width));
  Real squares = 0;
  for (size_t j = 0; j < pooled.size(); ++j) {
    for (const auto& row : x) pooled[j] += row[j] / static_cast<Real>(x.size());
    squares += pooled[j] * pooled[j];
  }
  for (Real& v : pooled) v /= std::sqrt(squares);
  return pooled;
}

}  // namespace tilewright::models
