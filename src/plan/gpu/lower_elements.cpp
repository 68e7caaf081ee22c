// One operation on one element, and the operations of a `parallel` body: what varies with the same variables only is
// computed once.
#include <fmt/format.h>

#include <algorithm>

#include "plan/gpu/lowering.h"
#include "plan/gpu/op_views.h"

namespace tilewright::plan::gpu {

using ir::OpKind;

/// A computed integer in the type of indices. Kernels where one is used have indices of 64 bits (data_indices.h).
Operand Lowering::as_index(const ir::Value* v) {
  const auto known = values_.find(v);
  if (known == values_.end()) unsupported({}, fmt::format("an index of {}, which has no value here,", v->name));
  return index_.narrowed(index_.widened(known->second, register_type(v->type.dtype)));
}

void Lowering::scalar_op(const ir::Op& o) {
  element_op(o);
  // Integers may be used in index expressions.
  for (const ir::Value* v : o.results) {
    if (!v->type.is_scalar() || !is_int(v->type.dtype)) continue;
    if (o.kind == OpKind::IndexValue)
      index_.bind(v, index_.affine(o.as<ir::IndexAttributes>().index));
    else
      index_.bind(v, {as_index(v), 0});
  }
}

Operand Lowering::index_value(const ir::Op& o) {
  const ir::Index x = o.as<ir::IndexAttributes>().index;
  if (o.result()->type.dtype != DType::Bool) return index_.in_64_bits(index_.value(x));
  const bool varies = parallel_ && uses_any(x, parallel_->regions[0]->arguments);
  return assume_guards_ && varies ? Operand(1) : index_.condition(x);
}

Operand Lowering::binary_op(const ir::Op& o) {
  const ir::Value *a = o.operands[0], *b = o.operands[1];
  if (&o == left_out_) return operand(a->def && a->def->kind == OpKind::Load ? a : b);
  if (const auto factor = loaded_factors_.find(a); factor != loaded_factors_.end())
    return scaled_difference(operand(a), factor->second, operand(b));
  const Operand x = operand(a), y = operand(b);
  return binary(o.as<ir::BinaryAttributes>().op, a->type.dtype, x, y);
}

Operand Lowering::select_op(const ir::Op& o) {
  const Operand p = operand(o.operands[0]), yes = operand(o.operands[1]), no = operand(o.operands[2]);
  const DType dtype = o.result()->type.dtype;
  if (dtype != DType::Bool) return b_.select(register_type(dtype), p, yes, no);
  const Operand first = b_.logical_and(p, yes), negated = b_.logical_not(p);
  return b_.logical_or(first, b_.logical_and(negated, no));
}

// Rounding is left to the reader when the only reader is a tile that rounds when it is packed.
Operand Lowering::cast_op(const ir::Op& o) {
  const ir::Value* result = o.result();
  const DType from = o.operands[0]->type.dtype;
  bool is_left =
      parallel_ && is_storage_float(result->type.dtype) && register_type(from) == Scalar::F32 && !unrounded_.empty();
  if (is_left)
    for (const ir::Op* user : parallel_->regions[0]->ops)
      for (const ir::Value* v : user->operands)
        if (v == result)
          is_left &= user->kind == OpKind::Store && unrounded_.contains(user->as<ir::AccessAttributes>().buffer);
  const Operand x = operand(o.operands[0]);
  return is_left ? x : cast(from, result->type.dtype, x);
}

/// Load or store of an element that this thread holds in a register.
void Lowering::register_access(const ir::Op& o, const Fragment& f) {
  const auto& a = o.as<ir::AccessAttributes>();
  const auto& variables = parallel_->regions[0]->arguments;
  std::vector<int> offsets;
  for (const ir::Index& x : a.indices)
    offsets.push_back(iteration_offsets_[static_cast<size_t>(std::find(variables.begin(), variables.end(), x.symbol()) -
                                                             variables.begin())]);
  const int r = f.distribution.find(offsets);
  if (r < 0) unsupported(o.location, "a fragment whose layout differs from its loop's");
  const Reg reg = f.registers[static_cast<size_t>(r)];
  const bool is_bool = a.buffer->type.dtype == DType::Bool;
  if (o.kind == OpKind::Store) {
    const Operand x = operand(o.operands[0]);
    if (is_bool) return b_.assign(reg, b_.select(Scalar::B32, x, 1, 0));
    return b_.assign(reg, unrounded_.contains(a.buffer) ? x : rounded(a.buffer->type.dtype, x));
  }
  const ir::Value* result = o.result();
  if (const auto factor = factors_.find(a.buffer); factor != factors_.end() && !left_out_) {
    if (!is_read_by_differences(o)) return define(result, b_.mul(Scalar::F32, reg, factor->second));
    loaded_factors_.insert_or_assign(result, factor->second);
    return define(result, b_.copy_of(reg));
  }
  if (packed_.contains(a.buffer)) return define(result, element(a.buffer, static_cast<size_t>(r)));
  define(result, is_bool ? b_.compare(Compare::Ne, Scalar::S32, reg, 0) : Operand(b_.copy_of(reg)));
}

Coordinates Lowering::affine_coordinates(const std::vector<ir::Index>& indices) {
  Coordinates at;
  for (const ir::Index& x : indices) at.push_back(index_.affine(x));
  return at;
}

/// Outside `parallel` one thread acts for the block.
Operand Lowering::acting() { return parallel_ ? iteration_guard_ : b_.compare(Compare::Eq, Scalar::U32, thread_, 0); }

void Lowering::access_op(const ir::Op& o) {
  const auto& a = o.as<ir::AccessAttributes>();
  const bool is_load = o.kind == OpKind::Load;
  if (const auto f = fragments_.find(a.buffer); f != fragments_.end()) return register_access(o, f->second);
  if (!parallel_) is_load ? reads(a.buffer) : writes(a.buffer);
  const Coordinates at = affine_coordinates(a.indices);
  if (is_load)
    return define(o.result(), load(a.buffer, at, o.operands.empty() ? Operand(0) : operand(o.operands[0]), 1));
  const Operand guard = variables_.contains(a.buffer) ? Operand(1) : acting();
  store(a.buffer, at, operand(o.operands[0]), guard);
}

void Lowering::atomic_op(const ir::Op& o) {
  const auto& a = o.as<ir::AtomicAttributes>();
  if (!parallel_) writes(a.buffer);
  const Coordinates at = affine_coordinates(a.indices);
  const Operand x = operand(o.operands[0]);
  atomic(a.buffer, a.kind, at, x, acting());
}

void Lowering::allocate_private(const ir::Value* v) {
  int64_t count = 1;
  for (const ir::Index& n : v->type.shape) count *= n.constant().value_or(1);
  const DType dtype = v->type.dtype;
  variables_[v] = b_.regs(static_cast<int>(count), dtype == DType::Bool ? Scalar::B32 : register_type(dtype));
  for (Reg r : variables_[v]) b_.assign(r, 0);
}

void Lowering::element_op(const ir::Op& o) {
  const auto type_of = [&](size_t i) { return o.operands[i]->type.dtype; };
  const ir::Value* result = o.result();
  switch (o.kind) {
    case OpKind::Constant: return define(result, constant(result->type.dtype, o.as<ir::ConstantAttributes>()));
    case OpKind::IndexValue: return define(result, index_value(o));
    case OpKind::Unary:
      return define(result,
                    unary(o.as<ir::UnaryAttributes>().op, type_of(0), result->type.dtype, operand(o.operands[0])));
    case OpKind::Binary: return define(result, binary_op(o));
    case OpKind::Compare: {
      const Operand x = operand(o.operands[0]), y = operand(o.operands[1]);
      return define(result, compare(o.as<ir::CompareAttributes>().op, type_of(0), x, y));
    }
    case OpKind::Select: return define(result, select_op(o));
    case OpKind::Cast: return define(result, cast_op(o));
    case OpKind::Fma: {
      const Operand x = operand(o.operands[0]), y = operand(o.operands[1]), z = operand(o.operands[2]);
      return define(result, b_.mad(register_type(result->type.dtype), x, y, z));
    }
    case OpKind::Load:
    case OpKind::Store: return access_op(o);
    case OpKind::Atomic: return atomic_op(o);
    case OpKind::If: return if_else(o);
    case OpKind::For: return for_loop(o);
    case OpKind::While: return while_loop(o);
    case OpKind::Alloc: return allocate_private(result);
    case OpKind::Fill: return fill(o);
    case OpKind::Print: return print(o);
    case OpKind::Assert: return assertion(o);
    case OpKind::Assume:
    case OpKind::Yield: return;
    default: unsupported(o.location, fmt::format("operation {} here", ir::info(o.kind).mnemonic));
  }
}

/// The variables of the `parallel` that the value of `o` depends on, as bits; all bits when it must be computed anew.
uint64_t Lowering::uses_of(const ir::Op& o) const {
  if (left_out_) return ~uint64_t{0};
  const auto of = [&](const ir::Value* v) { return element_uses_.contains(v) ? element_uses_.at(v) : 0; };
  uint64_t uses = 0;
  for (const ir::Value* v : o.operands) uses |= of(v);
  const auto add_index = [&](const ir::Index& x) {
    ir::for_each_symbol(x, [&](const ir::Value* v) { uses |= of(v); });
  };
  if (o.kind == OpKind::IndexValue) add_index(o.as<ir::IndexAttributes>().index);
  if (o.kind != OpKind::Load) return uses;
  for (const ir::Index& x : o.as<ir::AccessAttributes>().indices) add_index(x);
  const ir::Value* buffer = o.as<ir::AccessAttributes>().buffer;
  const bool changes = written_globals_.contains(buffer) || variables_.contains(buffer) || factors_.contains(buffer) ||
                       (fragments_.contains(buffer) && stored_here_.contains(buffer));
  return changes ? ~uint64_t{0} : uses;
}

/// The same operation at the same coordinates of the variables it depends on has the same value.
void Lowering::shared_element_op(const ir::Op& o) {
  const uint64_t uses = uses_of(o);
  element_uses_[o.result()] = uses;
  uint64_t key = mix(2001, reinterpret_cast<uint64_t>(&o));
  for (size_t d = 0; d < iteration_offsets_.size(); ++d)
    if (uses >> d & 1) key = mix(key, static_cast<uint64_t>(iteration_offsets_[d]) + 1);
  if (const Operand* known = index_.find(key)) return define(o.result(), *known);
  element_op(o);
  if (uses != ~uint64_t{0}) index_.remember(key, operand(o.result()));
}

void Lowering::element_region(const ir::Region& r) {
  for (const ir::Op* o : r.ops) {
    if (!o->regions.empty())
      op(*o);
    else if (r.parent != parallel_ || o->results.empty() || o->kind == OpKind::Alloc)
      element_op(*o);
    else
      shared_element_op(*o);
  }
}

}  // namespace tilewright::plan::gpu
