// Scalar operations and `parallel`: one thread computes the iterations whose elements it holds.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/narrow_float.h"
#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::BinaryOp;
using ir::CompareOp;
using ir::OpKind;
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

namespace {

constexpr double kLog2e = 1.4426950408889634, kLn2 = 0.6931471805599453;

/// f32 sequences built from approximations of the special function unit, corrected where its error would show.
class Math {
 public:
  explicit Math(Builder& b) : b_(b) {}
  static Operand c(double x) { return Operand::f32(static_cast<float>(x)); }
  Operand fma(Operand a, Operand b, Operand d) { return b_.mad(Scalar::F32, a, b, d); }
  Operand mul(Operand a, Operand b) { return b_.mul(Scalar::F32, a, b); }
  Operand add(Operand a, Operand b) { return b_.add(Scalar::F32, a, b); }
  Operand neg(Operand a) { return b_.unary(Op::Neg, Scalar::F32, a); }
  Operand abs(Operand a) { return b_.unary(Op::Abs, Scalar::F32, a); }
  Operand exp2(Operand x) { return b_.unary(Op::Exp2, Scalar::F32, x, 1); }
  Operand pick(Operand p, Operand yes, Operand no) { return b_.select(Scalar::F32, p, yes, no); }
  Operand less(Operand a, Operand b) { return b_.compare(Compare::Lt, Scalar::F32, a, b); }
  Operand with_sign_of(Operand magnitude, Operand x) {
    return b_.bit_or(Scalar::B32, b_.bit_and(Scalar::B32, magnitude, 0x7fffffff),
                     b_.bit_and(Scalar::B32, x, int64_t{0x80000000}));
  }
  template <size_t N>
  Operand polynomial(Operand x, const double (&coefficients)[N]) {
    Operand out = c(coefficients[N - 1]);
    for (size_t i = N - 1; i-- > 0;) out = fma(out, x, c(coefficients[i]));
    return out;
  }

  Operand exp(Operand x) {
    const Operand t = mul(x, c(kLog2e));
    const Operand lost = fma(x, c(kLog2e - static_cast<double>(static_cast<float>(kLog2e))), fma(x, c(kLog2e), neg(t)));
    const Operand y = exp2(t);
    return pick(less(abs(t), c(140)), fma(mul(y, c(kLn2)), lost, y), y);
  }
  /// Cephes-style: mantissa in [sqrt(1/2), sqrt(2)), polynomial, exponent added last.
  Operand log(Operand x, bool base2) {
    const Operand tiny = less(x, c(0x1p-126));
    const Operand scaled = pick(tiny, mul(x, c(0x1p24)), x);
    const Operand shifted = b_.sub(Scalar::S32, scaled, 0x3f3504f3);
    Operand exponent = b_.convert(Scalar::F32, Scalar::S32, b_.shr(Scalar::S32, shifted, 23));
    exponent = add(exponent, pick(tiny, c(-24), c(0)));
    const Operand m = add(b_.add(Scalar::S32, b_.bit_and(Scalar::B32, shifted, 0x7fffff), 0x3f3504f3), c(-1));
    const double p[] = {3.3333331174e-1,  -2.4999993993e-1, 2.0000714765e-1,  -1.6668057665e-1, 1.4249322787e-1,
                        -1.2420140846e-1, 1.1676998740e-1,  -1.1514610310e-1, 7.0376836292e-2};
    const Operand z = mul(m, m);
    Operand y = mul(mul(polynomial(m, p), m), z);
    Operand out = 0;
    if (base2) {
      y = fma(z, c(-0.5), y);
      const double extra = kLog2e - 1;
      out = add(add(fma(m, c(extra), mul(y, c(extra))), y), m);
      out = add(out, exponent);
    } else {
      y = fma(exponent, c(-2.12194440e-4), y);
      y = fma(z, c(-0.5), y);
      out = fma(exponent, c(0.693359375), add(m, y));
    }
    const float infinity = std::bit_cast<float>(0x7f800000u);
    out = pick(b_.compare(Compare::Eq, Scalar::F32, x, Operand::f32(infinity)), x, out);
    out = pick(b_.compare(Compare::Eq, Scalar::F32, x, c(0)), Operand::f32(-infinity), out);
    return pick(b_.compare(Compare::Ge, Scalar::F32, x, c(0)), out, int64_t{0x7fffffff});
  }
  Operand reciprocal_of_one_plus(Operand x) { return b_.div(Scalar::F32, c(1), add(x, c(1))); }
  Operand tanh(Operand x) {
    const Operand a = abs(x), z = mul(x, x);
    const Operand e = exp(add(a, a));
    const Operand big = fma(c(-2), reciprocal_of_one_plus(e), c(1));
    const double p[] = {1, -3.3333333333e-1, 1.3333333333e-1, -5.3968253968e-2, 2.1869488536e-2, -8.8632355299e-3};
    const Operand small = mul(polynomial(z, p), x);
    return pick(less(a, c(0.3)), small, pick(b_.compare(Compare::Ge, Scalar::F32, a, c(0.3)), with_sign_of(big, x), x));
  }
  Operand sigmoid(Operand x) { return reciprocal_of_one_plus(exp(neg(x))); }
  /// Abramowitz and Stegun 7.1.26 beyond 0.5, the series of erf below.
  Operand erf(Operand x) {
    const Operand a = abs(x), z = mul(x, x);
    const double series[] = {1.1283791670955126,   -0.37612638903183754,   0.11283791670955126,   -0.026866170645131252,
                             0.005223977625442188, -0.0008548327023450853, 0.00012055332981789664};
    const Operand small = mul(polynomial(z, series), x);
    const Operand t = b_.div(Scalar::F32, c(1), fma(a, c(0.3275911), c(1)));
    const double p[] = {0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429};
    const Operand tail = mul(mul(polynomial(t, p), t), exp(neg(z)));
    const Operand big = with_sign_of(b_.sub(Scalar::F32, c(1), tail), x);
    return pick(less(a, c(0.75)), small, pick(b_.compare(Compare::Ge, Scalar::F32, a, c(0.75)), big, x));
  }
  Operand sine(Operand x, bool is_cosine) {
    const Operand k = b_.unary(Op::Round, Scalar::F32, mul(x, c(0.6366197723675814)), 0);
    Operand r = fma(k, c(-1.5707962512969971), x);
    r = fma(k, c(-7.5497894158615964e-8), r);
    r = fma(k, c(-5.3903029534742384e-15), r);
    Operand q = b_.convert(Scalar::S32, Scalar::F32, k);
    if (is_cosine) q = b_.add(Scalar::S32, q, 1);
    const Operand z = mul(r, r);
    const double s[] = {-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4},
                 d[] = {4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5};
    const Operand sine_part = fma(mul(polynomial(z, s), z), r, r);
    const Operand cosine_part = fma(mul(polynomial(z, d), z), z, fma(z, c(-0.5), c(1)));
    const Operand odd = b_.compare(Compare::Ne, Scalar::S32, b_.bit_and(Scalar::S32, q, 1), 0);
    const Operand y = pick(odd, cosine_part, sine_part);
    return b_.bit_xor(Scalar::B32, y, b_.shl(Scalar::S32, b_.bit_and(Scalar::S32, q, 2), 30));
  }
  Operand power(Operand x, Operand y) {
    const Operand a = abs(x);
    const Operand l = log(a, true);
    const Operand hi = mul(y, l);
    const Operand lost = fma(y, l, neg(hi));
    const Operand e = exp2(hi);
    Operand out = pick(less(abs(hi), c(140)), fma(mul(e, c(kLn2)), lost, e), e);
    const Operand whole = b_.compare(Compare::Eq, Scalar::F32, b_.unary(Op::Round, Scalar::F32, y, 3), y);
    const Operand half = mul(y, c(0.5));
    const Operand is_odd =
        b_.logical_and(whole, b_.compare(Compare::Ne, Scalar::F32, b_.unary(Op::Round, Scalar::F32, half, 3), half));
    const Operand negative = less(x, c(0));
    out = pick(b_.logical_and(negative, is_odd), neg(out), out);
    out = pick(b_.logical_and(negative, b_.logical_not(whole)), int64_t{0x7fffffff}, out);
    out = pick(b_.compare(Compare::Eq, Scalar::F32, x, c(1)), c(1), out);
    return pick(b_.compare(Compare::Eq, Scalar::F32, y, c(0)), c(1), out);
  }

 private:
  Builder& b_;
};

}  // namespace

Operand Lowering::unary(UnaryOp op, DType dtype, DType result, Operand x) {
  const Scalar type = register_type(dtype);
  if (dtype == DType::Bool) {
    if (op == UnaryOp::Not) return b_.logical_not(x);
    if (op == UnaryOp::IsNan) return 0;
    return x;
  }
  if (op == UnaryOp::IsNan) return is_float(dtype) ? b_.compare(Compare::Ne, type, x, x) : Operand(0);
  if (op == UnaryOp::Bitcast) {
    if (dtype == result || bytes(dtype) >= 4) return x;
    return from_memory(result, b_.in_register(to_memory(dtype, x), Scalar::B16));
  }
  if (op == UnaryOp::Neg)
    return is_float(dtype) ? Operand(b_.unary(Op::Neg, type, x)) : normalised(dtype, b_.sub(type, 0, x));
  if (op == UnaryOp::Abs) {
    if (is_float(dtype)) return b_.unary(Op::Abs, type, x);
    if (is_unsigned_int(dtype)) return x;
    return normalised(dtype, b_.select(type, b_.compare(Compare::Lt, type, x, 0), b_.sub(type, 0, x), x));
  }
  if (op == UnaryOp::Not) return normalised(dtype, b_.unary(Op::Not, type, x));
  if (op == UnaryOp::Sqrt && is_float(dtype)) return b_.unary(Op::Sqrt, type, x);
  if (op == UnaryOp::Floor || op == UnaryOp::Ceil || op == UnaryOp::Round)
    return is_float(dtype) ? Operand(b_.unary(Op::Round, type, x,
                                              op == UnaryOp::Round   ? 0
                                              : op == UnaryOp::Floor ? 1
                                                                     : 2))
                           : x;
  if (type == Scalar::F64 && op == UnaryOp::Rsqrt) return b_.div(type, Operand::f64(1), b_.unary(Op::Sqrt, type, x));
  if (type == Scalar::F64) return unary_f64(op, x);
  if (type != Scalar::F32) unsupported({}, fmt::format("{} on {}", ir::name(op), tilewright::name(dtype)));
  Math m(b_);
  switch (op) {
    case UnaryOp::Exp2: return m.exp2(x);
    case UnaryOp::Exp: return m.exp(x);
    case UnaryOp::Log: return m.log(x, false);
    case UnaryOp::Log2: return m.log(x, true);
    case UnaryOp::Tanh: return m.tanh(x);
    case UnaryOp::Erf: return m.erf(x);
    case UnaryOp::Sigmoid: return m.sigmoid(x);
    case UnaryOp::Rsqrt: return b_.unary(Op::Rsqrt, Scalar::F32, x);
    case UnaryOp::Sin: return m.sine(x, false);
    case UnaryOp::Cos: return m.sine(x, true);
    default: unsupported({}, fmt::format("{}", ir::name(op)));
  }
}

Operand Lowering::binary(BinaryOp op, DType dtype, Operand x, Operand y) {
  const Scalar type = register_type(dtype);
  if (dtype == DType::Bool) {
    switch (op) {
      case BinaryOp::And:
      case BinaryOp::Min:
      case BinaryOp::Mul: return b_.logical_and(x, y);
      case BinaryOp::Or:
      case BinaryOp::Max:
      case BinaryOp::Add: return b_.logical_or(x, y);
      default: return b_.logical_or(b_.logical_and(x, b_.logical_not(y)), b_.logical_and(b_.logical_not(x), y));
    }
  }
  const auto floored = [&](bool is_division) {
    const Operand divisor = b_.select(type, b_.compare(Compare::Eq, type, y, 0), 1, y);
    const Operand q = b_.div(type, x, divisor), r = b_.sub(type, x, b_.mul(type, q, divisor));
    Operand out = is_division ? q : r;
    if (is_signed_int(dtype)) {
      const Operand wrong = b_.logical_and(b_.compare(Compare::Ne, type, r, 0),
                                           b_.compare(Compare::Lt, type, b_.bit_xor(type, r, divisor), 0));
      out = b_.select(type, wrong, is_division ? b_.sub(type, q, 1) : b_.add(type, r, divisor), out);
    }
    return normalised(dtype, b_.select(type, b_.compare(Compare::Eq, type, y, 0), 0, out));
  };
  switch (op) {
    case BinaryOp::Add: return normalised(dtype, b_.add(type, x, y));
    case BinaryOp::Sub: return normalised(dtype, b_.sub(type, x, y));
    case BinaryOp::Mul: return normalised(dtype, b_.mul(type, x, y));
    case BinaryOp::Div:
      if (is_float(dtype)) return b_.div(type, x, y);
      return floored(true);
    case BinaryOp::FloorDiv:
      if (is_float(dtype)) return b_.unary(Op::Round, type, b_.div(type, x, y), 1);
      return floored(true);
    case BinaryOp::FloorMod:
      if (is_float(dtype)) return b_.sub(type, x, b_.mul(type, b_.unary(Op::Round, type, b_.div(type, x, y), 1), y));
      return floored(false);
    case BinaryOp::Min:
    case BinaryOp::Max: {
      const Operand out = op == BinaryOp::Min ? b_.min(type, x, y) : b_.max(type, x, y);
      if (type != Scalar::F64) return out;
      const Operand first = b_.select(type, b_.compare(Compare::Ne, type, y, y), y, out);
      return b_.select(type, b_.compare(Compare::Ne, type, x, x), x, first);
    }
    case BinaryOp::And: return b_.bit_and(type, x, y);
    case BinaryOp::Or: return b_.bit_or(type, x, y);
    case BinaryOp::Xor: return b_.bit_xor(type, x, y);
    case BinaryOp::Shl:
    case BinaryOp::Shr: {
      Operand count = b_.bit_and(type, y, bits(dtype) - 1);
      if (bytes(type) == 8) count = b_.convert(Scalar::U32, Scalar::U64, count);
      return normalised(dtype, op == BinaryOp::Shl ? b_.shl(type, x, count) : b_.shr(type, x, count));
    }
    case BinaryOp::Pow:
      if (type == Scalar::F32) return Math(b_).power(x, y);
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

// ---- one operation

void Lowering::scalar_op(const ir::Op& o) {
  element_op(o);
  // Integers may be used in index expressions.
  for (const ir::Value* v : o.results) {
    if (!v->type.is_scalar() || !is_int(v->type.dtype)) continue;
    const Operand x = operand(v);
    if (o.kind == OpKind::IndexValue)
      index_.bind(v, index_.affine(o.as<ir::IndexAttributes>().index));
    else
      index_.bind(v, {index_.narrowed(index_.widened(x, register_type(v->type.dtype))), 0});
  }
}

void Lowering::element_op(const ir::Op& o) {
  const auto type_of = [&](size_t i) { return o.operands[i]->type.dtype; };
  const ir::Value* result = o.result();
  switch (o.kind) {
    case OpKind::Constant: return define(result, constant(result->type.dtype, o.as<ir::ConstantAttributes>()));
    case OpKind::IndexValue: {
      const ir::Index x = o.as<ir::IndexAttributes>().index;
      if (result->type.dtype != DType::Bool) {
        const Operand v = index_.value(x);
        return define(result, index_.in_64_bits(v));
      }
      bool varies = false;
      if (parallel_)
        for (const ir::Value* v : parallel_->regions[0]->arguments) varies |= ir::uses_symbol(x, v);
      return define(result, assume_guards_ && varies ? Operand(1) : index_.condition(x));
    }
    case OpKind::Unary:
      return define(result,
                    unary(o.as<ir::UnaryAttributes>().op, type_of(0), result->type.dtype, operand(o.operands[0])));
    case OpKind::Binary:
      if (&o == left_out_)
        return define(result,
                      operand(o.operands[o.operands[0]->def && o.operands[0]->def->kind == OpKind::Load ? 0 : 1]));
      if (const auto factor = loaded_factors_.find(o.operands[0]); factor != loaded_factors_.end())
        return define(result, scaled_difference(operand(o.operands[0]), factor->second, operand(o.operands[1])));
      return define(
          result, binary(o.as<ir::BinaryAttributes>().op, type_of(0), operand(o.operands[0]), operand(o.operands[1])));
    case OpKind::Compare:
      return define(result, compare(o.as<ir::CompareAttributes>().op, type_of(0), operand(o.operands[0]),
                                    operand(o.operands[1])));
    case OpKind::Select: {
      const Operand p = operand(o.operands[0]), yes = operand(o.operands[1]), no = operand(o.operands[2]);
      if (result->type.dtype == DType::Bool)
        return define(result, b_.logical_or(b_.logical_and(p, yes), b_.logical_and(b_.logical_not(p), no)));
      return define(result, b_.select(register_type(result->type.dtype), p, yes, no));
    }
    case OpKind::Cast: {
      // Rounding is left to the reader when the only reader is a tile that rounds when it is packed.
      bool is_left = parallel_ && is_storage_float(result->type.dtype) && register_type(type_of(0)) == Scalar::F32 &&
                     !unrounded_.empty();
      if (is_left)
        for (const ir::Op* user : parallel_->regions[0]->ops)
          for (const ir::Value* v : user->operands)
            if (v == result)
              is_left &= user->kind == OpKind::Store && unrounded_.contains(user->as<ir::AccessAttributes>().buffer);
      return define(result,
                    is_left ? operand(o.operands[0]) : cast(type_of(0), result->type.dtype, operand(o.operands[0])));
    }
    case OpKind::Fma:
      return define(result, b_.mad(register_type(result->type.dtype), operand(o.operands[0]), operand(o.operands[1]),
                                   operand(o.operands[2])));
    case OpKind::Load:
    case OpKind::Store: {
      const auto& a = o.as<ir::AccessAttributes>();
      const bool is_load = o.kind == OpKind::Load;
      if (const auto f = fragments_.find(a.buffer); f != fragments_.end()) {
        std::vector<int> offsets;
        for (const ir::Index& x : a.indices) {
          const auto& variables = parallel_->regions[0]->arguments;
          offsets.push_back(iteration_offsets_[static_cast<size_t>(
              std::find(variables.begin(), variables.end(), x.symbol()) - variables.begin())]);
        }
        const int r = f->second.distribution.find(offsets);
        if (r < 0) unsupported(o.location, "a fragment whose layout differs from its loop's");
        const Reg reg = f->second.registers[static_cast<size_t>(r)];
        const bool is_bool = a.buffer->type.dtype == DType::Bool;
        if (const auto factor = factors_.find(a.buffer); is_load && factor != factors_.end() && !left_out_) {
          if (!is_read_by_differences(o)) return define(result, b_.mul(Scalar::F32, reg, factor->second));
          loaded_factors_.insert_or_assign(result, factor->second);
          return define(result, b_.copy_of(reg));
        }
        if (is_load && packed_.contains(a.buffer)) return define(result, element(a.buffer, static_cast<size_t>(r)));
        if (is_load)
          return define(result, is_bool ? b_.compare(Compare::Ne, Scalar::S32, reg, 0) : Operand(b_.copy_of(reg)));
        const Operand x = operand(o.operands[0]);
        b_.assign(reg, is_bool                         ? b_.select(Scalar::B32, x, 1, 0)
                       : unrounded_.contains(a.buffer) ? x
                                                       : rounded(a.buffer->type.dtype, x));
        return;
      }
      if (!parallel_) is_load ? reads(a.buffer) : writes(a.buffer);
      Coordinates at;
      for (const ir::Index& x : a.indices) at.push_back(index_.affine(x));
      if (is_load)
        return define(result, load(a.buffer, at, o.operands.empty() ? Operand(0) : operand(o.operands[0]), 1));
      const bool is_private = variables_.contains(a.buffer);
      const Operand guard = is_private  ? Operand(1)
                            : parallel_ ? iteration_guard_
                                        : b_.compare(Compare::Eq, Scalar::U32, thread_, 0);
      return store(a.buffer, at, operand(o.operands[0]), guard);
    }
    case OpKind::Atomic: {
      const auto& a = o.as<ir::AtomicAttributes>();
      if (!parallel_) writes(a.buffer);
      Coordinates at;
      for (const ir::Index& x : a.indices) at.push_back(index_.affine(x));
      atomic(a.buffer, a.kind, at, operand(o.operands[0]),
             parallel_ ? iteration_guard_ : b_.compare(Compare::Eq, Scalar::U32, thread_, 0));
      return;
    }
    case OpKind::If: return if_else(o);
    case OpKind::For: return for_loop(o);
    case OpKind::While: return while_loop(o);
    case OpKind::Alloc: {
      int64_t count = 1;
      for (const ir::Index& n : result->type.shape) count *= n.constant().value_or(1);
      variables_[result] = b_.regs(static_cast<int>(count),
                                   result->type.dtype == DType::Bool ? Scalar::B32 : register_type(result->type.dtype));
      for (Reg r : variables_[result]) b_.assign(r, 0);
      return;
    }
    case OpKind::Fill: return fill(o);
    case OpKind::Print: return print(o);
    case OpKind::Assert: return assertion(o);
    case OpKind::Assume:
    case OpKind::Yield: return;
    default: unsupported(o.location, fmt::format("operation {} here", ir::info(o.kind).mnemonic));
  }
}

// ---- parallel

void Lowering::element_region(const ir::Region& r) {
  for (const ir::Op* o : r.ops) {
    if (r.parent != parallel_ || !o->regions.empty() || o->results.empty() || o->kind == OpKind::Alloc) {
      if (o->regions.empty())
        element_op(*o);
      else
        op(*o);
      continue;
    }
    // Same operation at the same coordinates of the variables it depends on: the same value.
    uint64_t uses = 0;
    for (const ir::Value* v : o->operands) uses |= element_uses_.contains(v) ? element_uses_.at(v) : 0;
    const auto add_index = [&](const ir::Index& x) {
      ir::for_each_symbol(x, [&](const ir::Value* v) { uses |= element_uses_.contains(v) ? element_uses_.at(v) : 0; });
    };
    if (o->kind == OpKind::IndexValue) add_index(o->as<ir::IndexAttributes>().index);
    if (o->kind == OpKind::Load) {
      for (const ir::Index& x : o->as<ir::AccessAttributes>().indices) add_index(x);
      const ir::Value* buffer = o->as<ir::AccessAttributes>().buffer;
      if (written_globals_.contains(buffer) || variables_.contains(buffer) || factors_.contains(buffer) ||
          (fragments_.contains(buffer) && stored_here_.contains(buffer)))
        uses = ~uint64_t{0};
    }
    if (left_out_) uses = ~uint64_t{0};
    element_uses_[o->result()] = uses;
    uint64_t key = mix(2001, reinterpret_cast<uint64_t>(o));
    for (size_t d = 0; d < iteration_offsets_.size(); ++d)
      if (uses >> d & 1) key = mix(key, static_cast<uint64_t>(iteration_offsets_[d]) + 1);
    if (const Operand* known = index_.find(key)) {
      define(o->result(), *known);
      continue;
    }
    element_op(*o);
    if (uses != ~uint64_t{0}) index_.remember(key, operand(o->result()));
  }
}

namespace {

void for_each_store(const ir::Region& region, const std::function<void(const ir::Value*)>& visit) {
  for (const ir::Op* op : region.ops) {
    if (op->kind == OpKind::Store) visit(op->as<ir::AccessAttributes>().buffer);
    if (op->kind == OpKind::Atomic) visit(op->as<ir::AtomicAttributes>().buffer);
    for (const ir::Region* r : op->regions) for_each_store(*r, visit);
  }
}

}  // namespace

void Lowering::parallel_body(const ir::Op& o, const Distribution& iteration, bool assume_guards) {
  const auto& variables = o.regions[0]->arguments;
  index_.push();
  assume_guards_ = assume_guards;
  stored_here_.clear();
  for_each_store(*o.regions[0], [&](const ir::Value* v) { stored_here_.insert(v); });
  std::vector<Operand> base;
  for (int d = 0; d < iteration.rank(); ++d) base.push_back(thread_coordinate(iteration, d));
  const Operand owner = owns(iteration);
  for (size_t r = 0; r < iteration.registers.size(); ++r) {
    iteration_offsets_ = iteration.registers[r];
    for (size_t d = 0; d < variables.size(); ++d) {
      index_.bind(variables[d], {base[d], iteration_offsets_[d]});
      values_.erase(variables[d]);
      element_uses_[variables[d]] = uint64_t{1} << d;
    }
    iteration_guard_ = b_.logical_and(owner, valid(iteration, static_cast<int>(r)));
    element_region(*o.regions[0]);
  }
  assume_guards_ = false;
  index_.pop();
}

// A block-uniform predicate under which every index condition of the body holds for all iterations.
std::optional<Operand> Lowering::uniform_truth(const ir::Op& o) {
  const auto& variables = o.regions[0]->arguments;
  const auto& extents = o.as<ir::ParallelAttributes>().extents;
  std::optional<ir::Index> all;
  bool possible = true;
  const std::function<void(ir::Index)> require = [&](ir::Index x) {
    const ir::IndexNode& n = *x.node();
    bool varies = false;
    for (const ir::Value* v : variables) varies |= ir::uses_symbol(x, v);
    ir::Index truth = x;
    if (varies && x.op() == ir::IndexOp::And) {
      require(ir::Index(n.a));
      require(ir::Index(n.b));
      return;
    }
    if (varies && x.op() == ir::IndexOp::Or) {  // true when the side that does not vary is; else the other must be
      bool left = false;
      for (const ir::Value* v : variables) left |= ir::uses_symbol(ir::Index(n.a), v);
      const ir::Index still = ir::Index(left ? n.b : n.a), moving = ir::Index(left ? n.a : n.b);
      for (const ir::Value* v : variables) possible &= !ir::uses_symbol(still, v);
      std::optional<ir::Index> outer;
      std::swap(all, outer);
      require(moving);
      if (all) truth = ir::logical_or(still, *all);
      all = outer;
    } else if (varies) {
      if (x.op() != ir::IndexOp::Lt && x.op() != ir::IndexOp::Le) {
        possible = false;
        return;
      }
      ir::Index difference = ir::Index(n.a) - ir::Index(n.b);  // must be < 0 (<= 0) where it is largest
      for (size_t d = 0; d < variables.size(); ++d) {
        int64_t coefficient = 0;
        for (const auto& term : ir::linear_form(difference).terms) {
          if (term.factor.symbol() == variables[d])
            coefficient = term.coefficient;
          else if (ir::uses_symbol(term.factor, variables[d]))
            possible = false;
        }
        const ir::Index at = coefficient > 0 ? extents[d] - 1 : tile_.indices().constant(0);
        difference = ir::substitute(
            difference, [&](const ir::Value* v) { return v == variables[d] ? at : ir::Index(); }, tile_.indices());
      }
      const ir::Index zero = tile_.indices().constant(0);
      truth = x.op() == ir::IndexOp::Lt ? ir::less(difference, zero) : ir::less_equal(difference, zero);
    }
    all = all ? ir::logical_and(*all, truth) : truth;
  };
  for (const ir::Op* inner : o.regions[0]->ops) {
    if (inner->kind != OpKind::IndexValue || inner->result()->type.dtype != DType::Bool) continue;
    const ir::Index x = inner->as<ir::IndexAttributes>().index;
    bool varies = false;
    for (const ir::Value* v : variables) varies |= ir::uses_symbol(x, v);
    if (varies) require(x);
  }
  if (!possible || !all) return std::nullopt;
  return index_.condition(*all);
}

Fragment Lowering::to_shared(const ir::Value* v, const Location& location) {
  Fragment fragment = std::move(fragments_.at(v));
  SharedTile tile;
  const auto& shape = fragment.distribution.shape;
  tile.pitch = shape.empty() ? 1 : shape.back();
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  tile.offset = reserve_shared(count * bytes(v->type.dtype), 128, location);
  fact(fmt::format("fragment {}", v->name), "layout differs from its user's: converted through shared memory",
       location);
  fragments_.erase(v);
  shared_[v] = tile;
  barrier();
  const Operand owner = owns(fragment.distribution);
  for_elements({}, &fragment.distribution, [&](const Coordinates& at, int r, Operand guard) {
    Operand x = fragment.registers[static_cast<size_t>(r)];
    if (v->type.dtype == DType::Bool) x = b_.compare(Compare::Ne, Scalar::S32, x, 0);
    store(v, at, x, b_.logical_and(guard, owner));
  });
  return fragment;
}

void Lowering::from_shared(const ir::Value* v, Fragment fragment) {
  for_elements({}, &fragment.distribution, [&](const Coordinates& at, int r, Operand guard) {
    const Operand x = load(v, at, 0, guard);
    b_.assign(fragment.registers[static_cast<size_t>(r)],
              v->type.dtype == DType::Bool ? b_.select(Scalar::B32, x, 1, 0) : x);
  });
  barrier();
  shared_.erase(v);
  fragments_[v] = std::move(fragment);
}

namespace {

void for_each_access(const ir::Region& region,
                     const std::function<void(const ir::Value*, const std::vector<ir::Index>&)>& visit) {
  for (const ir::Op* op : region.ops) {
    if (op->kind == OpKind::Load || op->kind == OpKind::Store)
      visit(op->as<ir::AccessAttributes>().buffer, op->as<ir::AccessAttributes>().indices);
    for (const ir::Region* r : op->regions) for_each_access(*r, visit);
  }
}

}  // namespace

void Lowering::parallel(const ir::Op& o) {
  if (const auto step = scale_step(o)) return defer_scale(o, *step);
  const auto& extents = o.as<ir::ParallelAttributes>().extents;
  const auto& variables = o.regions[0]->arguments;
  std::vector<int64_t> shape;
  for (const ir::Index& n : extents) shape.push_back(n.constant().value_or(-1));
  const bool is_static = std::find(shape.begin(), shape.end(), -1) == shape.end();
  // Hazards once for the whole operation.
  std::vector<const ir::Value*> touched;
  const std::function<void(const ir::Region&)> scan_body = [&](const ir::Region& r) {
    for (const ir::Op* inner : r.ops) {
      if (inner->kind == OpKind::Load) reads(inner->as<ir::AccessAttributes>().buffer);
      if (inner->kind == OpKind::Store || inner->kind == OpKind::Load)
        touched.push_back(inner->as<ir::AccessAttributes>().buffer);
      for (const ir::Region* x : inner->regions) scan_body(*x);
    }
  };
  scan_body(*o.regions[0]);
  const std::function<void(const ir::Region&)> scan_writes = [&](const ir::Region& r) {
    for (const ir::Op* inner : r.ops) {
      const ir::Value* buffer = inner->kind == OpKind::Store    ? inner->as<ir::AccessAttributes>().buffer
                                : inner->kind == OpKind::Atomic ? inner->as<ir::AtomicAttributes>().buffer
                                                                : nullptr;
      // A write after this operation's own read of the same buffer is not a hazard: iterations are independent.
      if (buffer && is_tracked(buffer) && pending_writes_.contains(buffer)) barrier();
      for (const ir::Region* x : inner->regions) scan_writes(*x);
    }
  };
  const auto reads_by_others = pending_reads_;
  scan_writes(*o.regions[0]);
  const std::function<void(const ir::Region&)> mark_writes = [&](const ir::Region& r) {
    for (const ir::Op* inner : r.ops) {
      const ir::Value* buffer = inner->kind == OpKind::Store    ? inner->as<ir::AccessAttributes>().buffer
                                : inner->kind == OpKind::Atomic ? inner->as<ir::AtomicAttributes>().buffer
                                                                : nullptr;
      if (buffer && is_tracked(buffer)) {
        if (pending_reads_.contains(buffer)) barrier();
        pending_writes_.insert(buffer);
      }
      for (const ir::Region* x : inner->regions) mark_writes(*x);
    }
  };
  mark_writes(*o.regions[0]);

  const ir::Op* outer = parallel_;
  parallel_ = &o;
  const Distribution* identity = nullptr;
  bool uses_fragments = false;
  for (const ir::Value* v : touched) {
    const auto f = fragments_.find(v);
    if (f == fragments_.end()) continue;
    uses_fragments = true;
    if (f->second.distribution.rank() == static_cast<int>(shape.size())) identity = &f->second.distribution;
  }
  if (uses_fragments) {
    const Distribution iteration = identity ? *identity : row_major(shape, threads_, 4);
    // Fragments whose layout is not this iteration's, seen through their variables, are read and written in shared
    // memory meanwhile.
    std::vector<std::pair<const ir::Value*, Fragment>> moved;
    for_each_access(*o.regions[0], [&](const ir::Value* v, const std::vector<ir::Index>& indices) {
      const auto f = fragments_.find(v);
      if (f == fragments_.end()) return;
      Distribution seen = iteration;
      for (int d = iteration.rank() - 1; d >= 0; --d) {
        bool kept = false;
        for (const ir::Index& x : indices) kept |= x.symbol() == variables[static_cast<size_t>(d)];
        if (!kept) seen = slice(seen, d);
      }
      if (seen == f->second.distribution) return;
      moved.emplace_back(v, to_shared(v, o.location));
    });
    if (!moved.empty()) barrier();
    const auto truth = iteration.registers.size() >= 16 ? uniform_truth(o) : std::nullopt;
    const ir::Value* factors = moved.empty() ? row_factors(o) : nullptr;
    if (factors) {
      b_.if_then(any_is_not_one(factors), [&] { parallel_body(o, iteration, false); });
    } else if (truth) {
      b_.if_then(
          *truth, [&] { parallel_body(o, iteration, true); },
          [&] { parallel_body(o, iteration, options_.plant.is("gpu_elements", 2)); });  // plant 2: masks skipped
    } else {
      parallel_body(o, iteration, false);
    }
    if (!moved.empty()) barrier();
    for (auto& [v, fragment] : moved) from_shared(v, std::move(fragment));
  } else {
    const auto body = [&](const Coordinates& at) {
      iteration_offsets_.assign(shape.size(), 0);
      for (size_t d = 0; d < variables.size(); ++d) {
        index_.bind(variables[d], at[d]);
        values_.erase(variables[d]);
        element_uses_[variables[d]] = uint64_t{1} << d;
      }
      iteration_guard_ = 1;
      element_region(*o.regions[0]);
    };
    if (is_static) {
      for_elements(shape, nullptr, [&](const Coordinates& at, int, Operand) { body(at); });
    } else {
      Operand total = 1;
      std::vector<Operand> sizes;
      for (const ir::Index& n : extents) {
        sizes.push_back(index_.value(n));
        total = b_.mul(index_.type(), total, b_.max(index_.type(), sizes.back(), 0));
      }
      const Scalar unsigned_type = options_.wide_indices ? Scalar::U64 : Scalar::U32;
      const auto one = [&](Reg i) {
        index_.push();
        Coordinates at(sizes.size());
        Operand e = i;
        for (size_t d = sizes.size(); d-- > 0;) {
          at[d] = {d == 0 ? e : b_.rem(unsigned_type, e, sizes[d]), 0};
          if (d > 0) e = b_.div(unsigned_type, e, sizes[d]);
        }
        body(at);
        index_.pop();
      };
      b_.for_range(index_.widened(thread_, Scalar::U32), total, threads_, one, index_.type());
    }
  }
  parallel_ = outer;
  for_each_store(*o.regions[0], [&](const ir::Value* v) {
    factors_.erase(v);
    packed_.erase(v);
  });
  if (!outer) end_if_failed(o);
}

}  // namespace tilewright::plan::gpu
