#include "models/operators.h"

#include <fmt/format.h>

namespace tilewright::models {
namespace {

const char* suffix(bool bias, Activation activation) {
  switch (activation) {
    case Activation::None: return bias ? ":bias" : "";
    case Activation::Relu: return bias ? ":bias-relu" : ":relu";
    case Activation::Gelu: return bias ? ":bias-gelu" : ":gelu";
    case Activation::Silu: return bias ? ":bias-silu" : ":silu";
  }
  return "";
}

}  // namespace

std::string workload_of(const GemmCall& c) {
  return fmt::format("gemm:{}x{}x{}:nt{}", c.m, c.n, c.k, suffix(c.bias != nullptr, c.activation));
}
std::string workload_of(const AttentionCall& c) {
  return fmt::format("attn:b1hq{}hkv{}sq{}sk{}d{}:bshd{}", c.hq, c.hkv, c.sq, c.sk, c.d, c.causal ? ":causal-br" : "");
}
std::string workload_of(const NormCall& c) {
  return fmt::format("{}:{}x{}", c.bias ? "layernorm" : "rmsnorm", c.rows, c.columns);
}
std::string workload_of(const SwigluCall& c) { return fmt::format("swiglu:{}x{}", c.rows, c.columns); }

}  // namespace tilewright::models
