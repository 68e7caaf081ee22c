// Index expressions as 32-bit thread arithmetic.
//
// A symbol is bound to base + constant; sums keep their constant apart, so that the many registers of a tile share one
// base. Equal work is emitted once per scope. Values are taken to fit 31 bits (a fact of the shape class); addresses
// are formed in 64 bits elsewhere.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/ir.h"
#include "ir/thread_builder.h"

namespace tilewright::plan::gpu {

using ir::thread::Builder;
using ir::thread::Scalar;
using Operand = ir::thread::Value;

struct Affine {
  Operand base = 0;
  int64_t offset = 0;
};

class IndexEmitter {
 public:
  explicit IndexEmitter(Builder& builder) : b_(builder) { scopes_.emplace_back(); }

  void bind(const ir::Value* symbol, Affine value) { bound_[symbol] = value; }
  bool is_bound(const ir::Value* symbol) const { return bound_.contains(symbol); }
  Affine affine(ir::Index x);
  Operand value(ir::Index x);
  /// A predicate, or a folded constant.
  Operand condition(ir::Index x);

  /// Results emitted inside a scope are forgotten at its end.
  void push() { scopes_.emplace_back(); }
  void pop() { scopes_.pop_back(); }

  /// Emitted-once results for others, under keys of their choice.
  Operand* find(uint64_t key);
  void remember(uint64_t key, Operand v) { scopes_.back()[key] = v; }

 private:
  Affine compute(ir::Index x);
  Operand compare(ir::Index x);
  uint64_t key_of(ir::Index x, uint64_t salt, bool only_nonlinear);

  Builder& b_;
  std::unordered_map<const ir::Value*, Affine> bound_;
  std::vector<std::unordered_map<uint64_t, Operand>> scopes_;
};

inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15ull + b;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  return z ^ (z >> 27);
}

}  // namespace tilewright::plan::gpu
