// Expressions over vectors of lanes, for writing numeric sequences the way they read on paper.
//
// A Lane is one SSA value with operators; a LaneMath makes constants and holds the builder. Only expand_math uses it.
#pragma once

#include <span>

#include "ir/builder.h"

namespace tilewright::plan::cpu {

class LaneMath;

struct Lane {
  ir::Value* value = nullptr;
  LaneMath* math = nullptr;
};

class LaneMath {
 public:
  /// `keeps_exponentials`: the code generator has exp and exp2 of this type.
  LaneMath(ir::Builder& builder, DType dtype, int lanes, bool keeps_exponentials = false)
      : builder_(builder), dtype_(dtype), lanes_(lanes), keeps_exponentials_(keeps_exponentials) {}

  DType dtype() const { return dtype_; }
  bool is_f32() const { return dtype_ == DType::F32; }
  bool keeps_exponentials() const { return keeps_exponentials_; }
  Lane wrap(ir::Value* v) { return {v, this}; }
  Lane real(double v) { return wrap(builder_.real(dtype_, v, lanes_)); }
  Lane bits(int64_t v) { return wrap(builder_.integer(int_type(), v, lanes_)); }
  /// The constant for this precision.
  Lane pick(double f32, double f64) { return real(is_f32() ? f32 : f64); }

  Lane binary(ir::BinaryOp op, Lane x, Lane y) { return wrap(builder_.binary(op, x.value, y.value)); }
  Lane unary(ir::UnaryOp op, Lane x) { return wrap(builder_.unary(op, x.value)); }
  Lane compare(ir::CompareOp op, Lane x, Lane y) { return wrap(builder_.compare(op, x.value, y.value)); }
  Lane select(Lane condition, Lane yes, Lane no) { return wrap(builder_.select(condition.value, yes.value, no.value)); }
  Lane fma(Lane a, Lane b, Lane c) { return wrap(builder_.fma(a.value, b.value, c.value)); }
  Lane to_bits(Lane x) { return bitcast(x, int_type()); }
  Lane from_bits(Lane x) { return bitcast(x, dtype_); }
  Lane cast(Lane x, DType to) { return wrap(builder_.cast(x.value, to)); }

  /// c0 + c1·x + c2·x² + … by Horner's rule.
  Lane polynomial(Lane x, std::span<const double> coefficients);

 private:
  DType int_type() const { return is_f32() ? DType::I32 : DType::I64; }
  Lane bitcast(Lane x, DType to) {
    return wrap(
        builder_
            .op(ir::OpKind::Unary, {x.value}, ir::UnaryAttributes{ir::UnaryOp::Bitcast}, {ir::Type::scalar(to, lanes_)})
            ->result());
  }

  ir::Builder& builder_;
  DType dtype_;
  int lanes_;
  bool keeps_exponentials_;
};

inline Lane operator+(Lane x, Lane y) { return x.math->binary(ir::BinaryOp::Add, x, y); }
inline Lane operator-(Lane x, Lane y) { return x.math->binary(ir::BinaryOp::Sub, x, y); }
inline Lane operator*(Lane x, Lane y) { return x.math->binary(ir::BinaryOp::Mul, x, y); }
inline Lane operator/(Lane x, Lane y) { return x.math->binary(ir::BinaryOp::Div, x, y); }
inline Lane operator&(Lane x, Lane y) { return x.math->binary(ir::BinaryOp::And, x, y); }
inline Lane operator|(Lane x, Lane y) { return x.math->binary(ir::BinaryOp::Or, x, y); }
inline Lane operator^(Lane x, Lane y) { return x.math->binary(ir::BinaryOp::Xor, x, y); }
inline Lane operator-(Lane x) { return x.math->unary(ir::UnaryOp::Neg, x); }
inline Lane operator<(Lane x, Lane y) { return x.math->compare(ir::CompareOp::Lt, x, y); }
inline Lane operator==(Lane x, Lane y) { return x.math->compare(ir::CompareOp::Eq, x, y); }

}  // namespace tilewright::plan::cpu
