// What a model computes with: the few operators its forward pass is made of, behind one interface, so that each can be
// swapped without the model knowing.
//
// All tensors are f32, row-major and dense. The shapes of a call name a workload key (`workload_of`), the same one the
// benchmark uses, so "does MODEL call this operator at this shape" is a comparison of strings. A failure (a candidate
// that refuses a shape) is sticky: calls after it do nothing, and `status()` tells it once at the end of a forward
// pass.
#pragma once

#include <cstdint>
#include <string>

#include "base/diagnostic.h"

namespace tilewright::models {

enum class Activation : uint8_t { None, Relu, Gelu, Silu };

/// y[m×n] = act(x[m×k] · wᵀ + bias), w stored [n×k]; bias may be null.
struct GemmCall {
  int64_t m = 0, n = 0, k = 0;
  const float* x = nullptr;
  const float* w = nullptr;
  const float* bias = nullptr;
  Activation activation = Activation::None;
  float* y = nullptr;
};

/// o[sq×hq×d] = softmax(q·kᵀ/√d + mask)·v with q [sq×hq×d], k and v [sk×hkv×d]; causal: the last query sees the last
/// key.
struct AttentionCall {
  int64_t hq = 0, hkv = 0, sq = 0, sk = 0, d = 0;
  bool causal = true;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* o = nullptr;
};

/// RMSNorm (bias null) or LayerNorm of every row.
struct NormCall {
  int64_t rows = 0, columns = 0;
  const float* x = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float epsilon = 1e-5f;
  float* y = nullptr;
};

/// y = silu(a) · b.
struct SwigluCall {
  int64_t rows = 0, columns = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;
};

/// "gemm:64x768x768:nt:bias-gelu", "attn:b1hq12hkv4sq1sk64d64:bshd:causal-br", …
std::string workload_of(const GemmCall& call);
std::string workload_of(const AttentionCall& call);
std::string workload_of(const NormCall& call);
std::string workload_of(const SwigluCall& call);

class Operators {
 public:
  virtual ~Operators() = default;
  virtual void gemm(const GemmCall& call) = 0;
  virtual void attention(const AttentionCall& call) = 0;
  virtual void norm(const NormCall& call) = 0;
  virtual void swiglu(const SwigluCall& call) = 0;
  /// The first failure since construction.
  virtual Status status() const { return {}; }
};

}  // namespace tilewright::models
