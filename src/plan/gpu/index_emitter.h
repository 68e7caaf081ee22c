// Index expressions as thread arithmetic, of 32 bits, or of 64 for kernels of tensors too large for that.
//
// A symbol is bound to base + constant; sums keep their constant apart, so that the many registers of a tile share one
// base. Equal work is emitted once per scope. Values of the 32-bit form fit 31 bits (a guard of the recipe); addresses
// are formed in 64 bits elsewhere.
#pragma once

#include <functional>
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
  /// `computed` gives the present value, of the type of indices, of a symbol that is not bound: the result of an
  /// operation, which may be another one in each iteration that is emitted.
  using Computed = std::function<Operand(const ir::Value*)>;
  IndexEmitter(Builder& builder, Scalar type, bool truncates, Computed computed)
      : b_(builder), type_(type), truncates_(truncates), computed_(std::move(computed)) {
    scopes_.emplace_back();
  }

  /// S32 or S64: what values and bases of affine forms are.
  Scalar type() const { return type_; }
  /// A 32-bit integer (read as `from`) in the type of indices.
  Operand widened(Operand v, Scalar from = Scalar::S32);
  /// The same in 64 bits, and a 64-bit integer in the type of indices.
  Operand in_64_bits(Operand v) { return v.is_constant || is_wide(v) ? v : b_.convert(Scalar::S64, Scalar::S32, v); }
  Operand narrowed(Operand v) {
    return v.is_constant || bytes(type_) == 8 || !is_wide(v) ? v : b_.convert(Scalar::S32, Scalar::S64, v);
  }
  /// Low 32 bits, for what lies within a block.
  Operand low_bits(Operand v) { return v.is_constant || !is_wide(v) ? v : b_.convert(Scalar::U32, Scalar::U64, v); }
  /// A symbol's value is a 32-bit integer or of the type of indices.
  void bind(const ir::Value* symbol, Affine value) { bound_[symbol] = {widened(value.base), value.offset}; }
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
  static bool is_wide(Operand v) { return v.reg.width == ir::thread::Width::W64; }
  Affine compute(ir::Index x);
  Operand compare(ir::Index x);
  uint64_t key_of(ir::Index x, uint64_t salt, bool only_nonlinear);

  Builder& b_;
  Scalar type_;
  bool truncates_;  ///< a planted mistake: division of negative numbers rounds toward zero
  Computed computed_;
  std::unordered_map<const ir::Value*, Affine> bound_;
  std::vector<std::unordered_map<uint64_t, Operand>> scopes_;
};

inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15ull + b;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  return z ^ (z >> 27);
}

}  // namespace tilewright::plan::gpu
