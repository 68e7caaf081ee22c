// Pure element operations on lanes, and the operations that stay scalar (atomics, print, assert).
#include <cmath>
#include <limits>

#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::BinaryOp;
using ir::Op;
using ir::OpKind;
using ir::ReduceKind;
using ir::Type;
using ir::Value;

namespace {

bool is_always_true(const Value* v) {
  return v->def && v->def->kind == OpKind::IndexValue && v->type.dtype == DType::Bool &&
         v->def->as<ir::IndexAttributes>().index.is_constant(1);
}

}  // namespace

Value* Lowering::binary(BinaryOp op, Value* x, Value* y) {
  if (op == BinaryOp::And && is_always_true(x) && y->type.dtype == DType::Bool) return y;
  if (op == BinaryOp::And && is_always_true(y) && x->type.dtype == DType::Bool) return x;
  match(x, y);
  return b_.binary(op, x, y);
}

Value* Lowering::select(Value* c, Value* x, Value* y) {
  if (is_always_true(c)) return x;
  match(x, y);
  const int lanes = std::max(c->type.lanes, x->type.lanes);
  if (c->type.lanes > 1 || lanes == 1) return b_.select(widen(c, lanes), widen(x, lanes), widen(y, lanes));
  return b_.select(widen(c, lanes), x, y);
}

/// Joins two partial results of a reduction. The lanes of AbsSum and AbsMax already hold magnitudes.
Value* Lowering::join(ReduceKind kind, Value* x, Value* y) {
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::AbsSum: return binary(BinaryOp::Add, x, y);
    case ReduceKind::Prod: return binary(BinaryOp::Mul, x, y);
    case ReduceKind::Max:
    case ReduceKind::AbsMax: return binary(BinaryOp::Max, x, y);
    case ReduceKind::Min: return binary(BinaryOp::Min, x, y);
    case ReduceKind::And:
    case ReduceKind::All: return binary(BinaryOp::And, x, y);
    case ReduceKind::Or:
    case ReduceKind::Any: return binary(BinaryOp::Or, x, y);
    case ReduceKind::Xor: return binary(BinaryOp::Xor, x, y);
  }
  return x;
}

namespace {

int64_t integer_limit(DType dtype, bool largest) {
  const int n = bits(dtype);
  if (is_signed_int(dtype)) {
    const int64_t most = n == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (n - 1)) - 1;
    return largest ? most : -most - 1;
  }
  if (!largest) return 0;
  return n == 64 ? -1 : (int64_t{1} << n) - 1;
}

}  // namespace

Value* Lowering::identity(ReduceKind kind, DType dtype, int lanes) {
  const bool real = is_float(dtype);
  const auto constant = [&](double r, int64_t i) {
    return real ? b_.real(dtype, r, lanes) : b_.integer(dtype, i, lanes);
  };
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::AbsSum:
    case ReduceKind::AbsMax:
    case ReduceKind::Or:
    case ReduceKind::Any:
    case ReduceKind::Xor: return constant(0, 0);
    case ReduceKind::Prod: return constant(1, 1);
    case ReduceKind::Max:
      return constant(-std::numeric_limits<double>::infinity(), dtype == DType::Bool ? 0 : integer_limit(dtype, false));
    case ReduceKind::Min:
      return constant(std::numeric_limits<double>::infinity(), dtype == DType::Bool ? 1 : integer_limit(dtype, true));
    case ReduceKind::And: return constant(0, dtype == DType::Bool ? 1 : -1);
    case ReduceKind::All: return constant(1, 1);
  }
  return nullptr;
}

void Lowering::lower_element(const Op& op) {
  const auto operand = [&](size_t i) { return value(op.operands[i]); };
  const auto give = [&](Value* v) { values_[op.result()] = v; };
  switch (op.kind) {
    case OpKind::Load: {
      const auto& a = op.as<ir::AccessAttributes>();
      return give(load(source_of(a.buffer), map(a.indices), op.operands.empty() ? nullptr : operand(0)));
    }
    case OpKind::Store: {
      const auto& a = op.as<ir::AccessAttributes>();
      return store(placement(a.buffer), map(a.indices), operand(0));
    }
    case OpKind::Constant: {
      const auto& c = op.as<ir::ConstantAttributes>();
      return give(b_.op(OpKind::Constant, {}, c, {op.result()->type})->result());
    }
    case OpKind::IndexValue: {
      if (assumed_.contains(op.result()))
        return give(b_.index_condition(ir::less(b_.constant_index(0), b_.constant_index(1))));
      const ir::Index x = map(op.as<ir::IndexAttributes>().index);
      if (op.result()->type.dtype == DType::Bool) return give(condition(x));
      Value* v = is_uniform(x) ? b_.index_value(x) : spread(x);
      return give(v->type.dtype == DType::Bool ? b_.cast(v, DType::I64) : v);
    }
    case OpKind::Unary: {
      const ir::UnaryOp kind = op.as<ir::UnaryAttributes>().op;
      if (kind != ir::UnaryOp::Bitcast) return give(b_.unary(kind, operand(0)));
      const Type type = Type::scalar(op.result()->type.dtype, operand(0)->type.lanes);
      return give(b_.op(OpKind::Unary, {operand(0)}, ir::UnaryAttributes{kind}, {type})->result());
    }
    case OpKind::Binary: return give(binary(op.as<ir::BinaryAttributes>().op, operand(0), operand(1)));
    case OpKind::Compare: {
      Value *x = operand(0), *y = operand(1);
      match(x, y);
      return give(b_.compare(op.as<ir::CompareAttributes>().op, x, y));
    }
    case OpKind::Select: return give(select(operand(0), operand(1), operand(2)));
    case OpKind::Cast: return give(b_.cast(operand(0), op.result()->type.dtype));
    case OpKind::Print:
    case OpKind::Assert: {
      std::vector<Value*> operands;
      for (size_t i = 0; i < op.operands.size(); ++i) operands.push_back(operand(i));
      b_.op(op.kind, std::move(operands), op.as<ir::TextAttributes>());
      return;
    }
    default: return;  // Assume: facts are read by bounds_
  }
}

void Lowering::lower_atomic(const Op& op) {
  const auto& a = op.as<ir::AtomicAttributes>();
  const Placement& place = placement(a.buffer);
  const Address at = address(place, map(a.indices));
  const auto perform = [&] {
    Value* pointer = b_.offset(at.pointer, at.bytes);
    return b_
        .op(OpKind::AtomicMemory, {pointer, value(op.operands[0])}, ir::AtomicMemoryAttributes{a.kind, place.storage},
            {value(op.operands[0])->type})
        ->result();
  };
  if (!at.mask) {
    Value* old = perform();
    if (op.result()) values_[op.result()] = old;
    return;
  }
  const Type type = value(op.operands[0])->type;
  const Op* made = b_.if_else(
      at.mask, [&](const std::vector<Value*>&) { b_.yield({perform()}); },
      [&](const std::vector<Value*>&) {
        b_.yield({is_float(type.dtype) ? b_.real(type.dtype, 0) : b_.integer(type.dtype, 0)});
      },
      {type});
  if (op.result()) values_[op.result()] = made->results[0];
}

/// x86 read-modify-write instructions order earlier stores before them.
void Lowering::lower_arrive_last(const Op& op) {
  const auto& a = op.as<ir::ArriveLastAttributes>();
  std::vector<ir::Index> at;
  for (const ir::Slice& s : a.counter.slices) at.push_back(map(s.start));
  const Placement& place = placement(a.counter.buffer);
  ir::Index bytes = number(0);
  for (size_t d = 0; d < at.size(); ++d) bytes = bytes + at[d] * place.strides[d];
  Value* old = b_.op(OpKind::AtomicMemory, {b_.offset(place.pointer, bytes), b_.integer(DType::I32, 1)},
                     ir::AtomicMemoryAttributes{ir::AtomicKind::Add, DType::I32}, {Type::scalar(DType::I32)})
                   ->result();
  Value* last = b_.cast(b_.index_value(map(a.n) - 1), DType::I32);
  values_[op.result()] = b_.compare(ir::CompareOp::Eq, old, last);
}

}  // namespace tilewright::plan::cpu
