// Scalar operations on registers: constants, rounding, arithmetic, comparisons, conversions.
#include <fmt/format.h>

#include "base/narrow_float.h"
#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::BinaryOp;
using ir::CompareOp;
using ir::UnaryOp;
using ir::thread::Op;

Operand Lowering::operand(const ir::Value* v) {
  const auto it = values_.find(v);
  if (it != values_.end()) return it->second;
  if (index_.is_bound(v)) {
    const Affine a = index_.affine(tile_.indices().symbol(v));
    return index_.in_64_bits(b_.add(index_.type(), a.base, a.offset));
  }
  unsupported({}, fmt::format("value {} has no definition here", v->name));
}

Operand Lowering::constant(DType dtype, const ir::ConstantAttributes& a) {
  if (dtype == DType::F64) return Operand::f64(a.real);
  if (const NarrowFormat* format = narrow_format(dtype))
    return Operand::f32(decode_narrow(
        encode_narrow(a.real, *format, format->saturates ? Overflow::Saturate : Overflow::Ieee), *format));
  if (dtype == DType::F32) return Operand::f32(static_cast<float>(a.real));
  if (dtype == DType::Bool) return a.integer != 0 ? 1 : 0;
  return a.integer;
}

Operand Lowering::rounded(DType dtype, Operand x) {
  switch (dtype) {
    case DType::F16: return b_.convert(Scalar::F32, Scalar::F16, b_.convert(Scalar::F16, Scalar::F32, x));
    case DType::BF16: return b_.convert(Scalar::F32, Scalar::BF16, b_.convert(Scalar::BF16, Scalar::F32, x));
    case DType::E4M3:
    case DType::E5M2: return from_memory(dtype, b_.in_register(to_memory(dtype, x), Scalar::B16));
    default: return x;
  }
}

Operand Lowering::normalised(DType dtype, Operand x) {
  if (options_.plant.is("gpu_elements", 1)) return x;  // plant 1: narrow integers do not wrap
  switch (dtype) {
    case DType::I8: return b_.shr(Scalar::S32, b_.shl(Scalar::S32, x, 24), 24);
    case DType::I16: return b_.shr(Scalar::S32, b_.shl(Scalar::S32, x, 16), 16);
    case DType::U8: return b_.bit_and(Scalar::U32, x, 0xff);
    case DType::U16: return b_.bit_and(Scalar::U32, x, 0xffff);
    default: return x;
  }
}

Operand Lowering::unary(UnaryOp op, DType dtype, DType result, Operand x) {
  if (dtype == DType::Bool) return op == UnaryOp::Not ? b_.logical_not(x) : op == UnaryOp::IsNan ? Operand(0) : x;
  if (op == UnaryOp::Bitcast) {
    if (dtype == result || bytes(dtype) >= 4) return x;
    return from_memory(result, b_.in_register(to_memory(dtype, x), Scalar::B16));
  }
  return is_float(dtype) ? unary_float(op, dtype, x) : unary_integer(op, dtype, x);
}

Operand Lowering::unary_integer(UnaryOp op, DType dtype, Operand x) {
  const Scalar type = register_type(dtype);
  switch (op) {
    case UnaryOp::IsNan: return 0;
    case UnaryOp::Neg: return normalised(dtype, b_.sub(type, 0, x));
    case UnaryOp::Abs:
      if (is_unsigned_int(dtype)) return x;
      return normalised(dtype, b_.select(type, b_.compare(Compare::Lt, type, x, 0), b_.sub(type, 0, x), x));
    case UnaryOp::Not: return normalised(dtype, b_.unary(Op::Not, type, x));
    case UnaryOp::Floor:
    case UnaryOp::Ceil:
    case UnaryOp::Round: return x;
    default: unsupported({}, fmt::format("{} on {}", ir::name(op), tilewright::name(dtype)));
  }
}

Operand Lowering::unary_float(UnaryOp op, DType dtype, Operand x) {
  const Scalar type = register_type(dtype);
  switch (op) {
    case UnaryOp::IsNan: return b_.compare(Compare::Ne, type, x, x);
    case UnaryOp::Neg: return b_.unary(Op::Neg, type, x);
    case UnaryOp::Abs: return b_.unary(Op::Abs, type, x);
    case UnaryOp::Sqrt: return b_.unary(Op::Sqrt, type, x);
    case UnaryOp::Round: return b_.unary(Op::Round, type, x, 0);
    case UnaryOp::Floor: return b_.unary(Op::Round, type, x, 1);
    case UnaryOp::Ceil: return b_.unary(Op::Round, type, x, 2);
    default: break;
  }
  if (type == Scalar::F32) return unary_f32(op, x);
  if (op == UnaryOp::Rsqrt) return b_.div(type, Operand::f64(1), b_.unary(Op::Sqrt, type, x));
  return unary_f64(op, x);
}

Operand Lowering::binary_bool(BinaryOp op, Operand x, Operand y) {
  switch (op) {
    case BinaryOp::And:
    case BinaryOp::Min:
    case BinaryOp::Mul: return b_.logical_and(x, y);
    case BinaryOp::Or:
    case BinaryOp::Max:
    case BinaryOp::Add: return b_.logical_or(x, y);
    default: {
      const Operand only_x = b_.logical_and(x, b_.logical_not(y));
      return b_.logical_or(only_x, b_.logical_and(b_.logical_not(x), y));
    }
  }
}

/// Quotient or remainder of integers, rounded down; 0 where the divisor is 0.
Operand Lowering::floored(DType dtype, Operand x, Operand y, Floored which) {
  const Scalar type = register_type(dtype);
  const bool is_quotient = which == Floored::Quotient;
  const Operand divisor = b_.select(type, b_.compare(Compare::Eq, type, y, 0), 1, y);
  const Operand q = b_.div(type, x, divisor), r = b_.sub(type, x, b_.mul(type, q, divisor));
  Operand out = is_quotient ? q : r;
  if (is_signed_int(dtype)) {
    const Operand wrong = b_.logical_and(b_.compare(Compare::Ne, type, r, 0),
                                         b_.compare(Compare::Lt, type, b_.bit_xor(type, r, divisor), 0));
    out = b_.select(type, wrong, is_quotient ? b_.sub(type, q, 1) : b_.add(type, r, divisor), out);
  }
  return normalised(dtype, b_.select(type, b_.compare(Compare::Eq, type, y, 0), 0, out));
}

Operand Lowering::divided(BinaryOp op, DType dtype, Operand x, Operand y) {
  if (!is_float(dtype)) return floored(dtype, x, y, op == BinaryOp::FloorMod ? Floored::Remainder : Floored::Quotient);
  const Scalar type = register_type(dtype);
  const Operand quotient = b_.div(type, x, y);
  if (op == BinaryOp::Div) return quotient;
  const Operand whole = b_.unary(Op::Round, type, quotient, 1);
  return op == BinaryOp::FloorDiv ? whole : b_.sub(type, x, b_.mul(type, whole, y));
}

Operand Lowering::lesser_or_greater(BinaryOp op, DType dtype, Operand x, Operand y) {
  const Scalar type = register_type(dtype);
  const Operand out = op == BinaryOp::Min ? b_.min(type, x, y) : b_.max(type, x, y);
  if (type != Scalar::F64) return out;
  const Operand first = b_.select(type, b_.compare(Compare::Ne, type, y, y), y, out);
  return b_.select(type, b_.compare(Compare::Ne, type, x, x), x, first);
}

Operand Lowering::shifted(BinaryOp op, DType dtype, Operand x, Operand y) {
  const Scalar type = register_type(dtype);
  Operand count = b_.bit_and(type, y, bits(dtype) - 1);
  if (bytes(type) == 8) count = b_.convert(Scalar::U32, Scalar::U64, count);
  return normalised(dtype, op == BinaryOp::Shl ? b_.shl(type, x, count) : b_.shr(type, x, count));
}

Operand Lowering::binary(BinaryOp op, DType dtype, Operand x, Operand y) {
  if (dtype == DType::Bool) return binary_bool(op, x, y);
  const Scalar type = register_type(dtype);
  switch (op) {
    case BinaryOp::Add: return normalised(dtype, b_.add(type, x, y));
    case BinaryOp::Sub: return normalised(dtype, b_.sub(type, x, y));
    case BinaryOp::Mul: return normalised(dtype, b_.mul(type, x, y));
    case BinaryOp::Div:
    case BinaryOp::FloorDiv:
    case BinaryOp::FloorMod: return divided(op, dtype, x, y);
    case BinaryOp::Min:
    case BinaryOp::Max: return lesser_or_greater(op, dtype, x, y);
    case BinaryOp::And: return b_.bit_and(type, x, y);
    case BinaryOp::Or: return b_.bit_or(type, x, y);
    case BinaryOp::Xor: return b_.bit_xor(type, x, y);
    case BinaryOp::Shl:
    case BinaryOp::Shr: return shifted(op, dtype, x, y);
    case BinaryOp::Pow:
      if (type == Scalar::F32) return power_f32(x, y);
      if (type == Scalar::F64) return power_f64(x, y);
      break;
  }
  unsupported({}, fmt::format("{} on {}", ir::name(op), tilewright::name(dtype)));
}

Operand Lowering::compare(CompareOp op, DType dtype, Operand x, Operand y) {
  constexpr Compare hows[] = {Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge};
  const Compare how = hows[static_cast<int>(op)];
  if (dtype == DType::Bool)
    return b_.compare(how, Scalar::S32, b_.select(Scalar::B32, x, 1, 0), b_.select(Scalar::B32, y, 1, 0));
  return b_.compare(how, register_type(dtype), x, y);
}

namespace {

/// f64 to f32 rounded to odd: what is rounded again, to fewer bits, is then rounded as if once.
Operand rounded_to_odd(Builder& b, Operand x) {
  const Operand near = b.convert(Scalar::F32, Scalar::F64, x);
  const Operand back = b.convert(Scalar::F64, Scalar::F32, near);
  const Operand beyond =
      b.compare(Compare::Gt, Scalar::F64, b.unary(Op::Abs, Scalar::F64, back), b.unary(Op::Abs, Scalar::F64, x));
  const Operand cut = b.select(Scalar::B32, beyond, b.sub(Scalar::U32, near, 1), near);
  const Operand inexact = b.compare(Compare::Ne, Scalar::F64, back, x);
  return b.select(Scalar::B32, inexact, b.bit_or(Scalar::B32, cut, 1), cut);
}

/// An integer as f64 rounded to odd: of 64 bits beyond 2^53 the last bit kept stands for those that are not.
Operand integer_to_odd(Builder& b, Scalar source, Operand x) {
  if (bytes(source) < 8) return b.convert(Scalar::F64, source, x);
  const int64_t limit = int64_t{1} << 53, lost = 0xfff;
  const Operand is_large = source == Scalar::S64
                               ? b.compare(Compare::Ge, Scalar::U64, b.add(Scalar::S64, x, limit), 2 * limit)
                               : b.compare(Compare::Ge, Scalar::U64, x, limit);
  const Operand has_rest = b.compare(Compare::Ne, Scalar::U64, b.bit_and(Scalar::B64, x, lost), 0);
  const Operand kept = b.bit_and(Scalar::B64, x, ~lost);
  const Operand sticky = b.select(Scalar::B64, has_rest, b.bit_or(Scalar::B64, kept, (lost + 1) / 2), kept);
  return b.convert(Scalar::F64, source, b.select(Scalar::B64, is_large, sticky, x));
}

}  // namespace

Operand Lowering::cast(DType from, DType to, Operand x) {
  if (from == to) return x;
  const Scalar source = register_type(from), target = register_type(to);
  if (to == DType::Bool)
    return b_.compare(Compare::Ne, source, x, is_float(from) && source == Scalar::F64 ? Operand::f64(0) : Operand(0));
  if (from == DType::Bool) {
    if (is_float(to))
      return to == DType::F64 ? b_.select(target, x, Operand::f64(1), Operand::f64(0))
                              : b_.select(target, x, Operand::f32(1), Operand::f32(0));
    return b_.select(target, x, 1, 0);
  }
  if (is_float(to)) {
    if (source == target) return rounded(to, x);
    if (is_storage_float(to) && source == Scalar::F64 && !x.is_constant) return rounded(to, rounded_to_odd(b_, x));
    // Integers that f32 rounds (from 2^24 on) are beyond f16 and fp8 however they are rounded, not beyond bf16.
    if (to == DType::BF16 && is_int(from) && bytes(source) >= 4 && bits(from) >= 32 && !x.is_constant)
      return rounded(to, rounded_to_odd(b_, integer_to_odd(b_, source, x)));
    return rounded(to, b_.convert(target, source, x));
  }
  if (is_float(from)) {
    Operand y = b_.convert(target, source, x);
    if (bytes(target) == 8 || source == Scalar::F64) y = b_.select(target, b_.compare(Compare::Ne, source, x, x), 0, y);
    if (to == DType::I8 || to == DType::I16) {
      const int64_t top = (int64_t{1} << (bits(to) - 1)) - 1;
      return b_.max(Scalar::S32, b_.min(Scalar::S32, y, top), -top - 1);
    }
    if (to == DType::U8 || to == DType::U16) return b_.min(Scalar::U32, y, (int64_t{1} << bits(to)) - 1);
    return y;
  }
  return normalised(to, bytes(source) == bytes(target) ? x : b_.convert(target, source, x));
}

}  // namespace tilewright::plan::gpu
