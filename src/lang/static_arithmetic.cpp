#include "lang/static_arithmetic.h"

#include <cmath>
#include <limits>

#include "base/narrow_float.h"
#include "ir/real_math.h"

namespace tilewright::lang {
namespace {

std::optional<double> as_double(const StaticValue& v) {
  if (const auto* r = std::get_if<double>(&v)) return *r;
  if (const auto* i = std::get_if<int64_t>(&v)) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<StaticValue> fold_integers(Operator op, int64_t x, int64_t y) {
  const auto shift = static_cast<int>(y & 63);
  switch (op) {
    case Operator::Add: return ir::wrapping_add(x, y);
    case Operator::Sub: return ir::wrapping_add(x, ir::wrapping_mul(y, -1));
    case Operator::Mul: return ir::wrapping_mul(x, y);
    case Operator::FloorDiv: return ir::floor_div(x, y);
    case Operator::FloorMod: return ir::floor_mod(x, y);
    case Operator::Lt: return x < y;
    case Operator::Le: return x <= y;
    case Operator::Gt: return x > y;
    case Operator::Ge: return x >= y;
    case Operator::Eq: return x == y;
    case Operator::Ne: return x != y;
    case Operator::BitAnd: return x & y;
    case Operator::BitOr: return x | y;
    case Operator::BitXor: return x ^ y;
    case Operator::Shl: return static_cast<int64_t>(static_cast<uint64_t>(x) << shift);
    case Operator::Shr: return x >> shift;
    default: return std::nullopt;
  }
}

std::optional<StaticValue> fold_numbers(Operator op, double x, double y) {
  switch (op) {
    case Operator::Add: return x + y;
    case Operator::Sub: return x - y;
    case Operator::Mul: return x * y;
    case Operator::Div: return x / y;
    case Operator::Lt: return x < y;
    case Operator::Le: return x <= y;
    case Operator::Gt: return x > y;
    case Operator::Ge: return x >= y;
    case Operator::Eq: return x == y;
    case Operator::Ne: return x != y;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<StaticValue> fold_static(Operator op, const StaticValue& x, const StaticValue& y) {
  if (x.index() == y.index() && !as_double(x)) {
    const auto* a = std::get_if<bool>(&x);
    if (op == Operator::Eq) return x == y;
    if (op == Operator::Ne) return x != y;
    if (a && op == Operator::And) return *a && std::get<bool>(y);
    if (a && op == Operator::Or) return *a || std::get<bool>(y);
    return std::nullopt;
  }
  const auto* i = std::get_if<int64_t>(&x);
  const auto* j = std::get_if<int64_t>(&y);
  if (i && j) return fold_integers(op, *i, *j);
  const auto a = as_double(x), b = as_double(y);
  if (a && b) return fold_numbers(op, *a, *b);
  return std::nullopt;
}

std::optional<StaticValue> fold_min_max(bool is_max, const StaticValue& x, const StaticValue& y) {
  const auto* i = std::get_if<int64_t>(&x);
  const auto* j = std::get_if<int64_t>(&y);
  if (i && j) return is_max ? std::max(*i, *j) : std::min(*i, *j);
  const auto a = as_double(x), b = as_double(y);
  if (!a || !b) return std::nullopt;
  if (std::isnan(*a) || std::isnan(*b)) return std::numeric_limits<double>::quiet_NaN();
  return is_max ? std::max(*a, *b) : std::min(*a, *b);
}

std::optional<StaticValue> fold_math(ir::UnaryOp op, const StaticValue& v) {
  if (const auto* i = std::get_if<int64_t>(&v)) {
    if (op == ir::UnaryOp::Neg) return ir::wrapping_mul(*i, -1);
    if (op == ir::UnaryOp::Abs) return *i < 0 ? ir::wrapping_mul(*i, -1) : *i;
  }
  const auto number = as_double(v);
  if (!number) return std::nullopt;
  if (op == ir::UnaryOp::Not || op == ir::UnaryOp::Bitcast) return std::nullopt;
  if (op == ir::UnaryOp::IsNan) return std::isnan(*number);
  return ir::evaluate(op, *number);
}

bool fits(int64_t v, DType dtype) {
  const int width = bits(dtype);
  if (width == 64) return is_signed_int(dtype) || v >= 0;
  if (is_unsigned_int(dtype)) return v >= 0 && v < (int64_t{1} << width);
  return v >= -(int64_t{1} << (width - 1)) && v < (int64_t{1} << (width - 1));
}

std::optional<StaticValue> cast_static(const StaticValue& x, DType dtype) {
  if (const auto* flag = std::get_if<bool>(&x)) return cast_static(int64_t{*flag}, dtype);
  const auto number = as_double(x);
  if (!number) return std::nullopt;
  if (dtype == DType::Bool) return *number != 0;
  if (const auto* i = std::get_if<int64_t>(&x); i && is_int(dtype)) {
    const int unused = 64 - bits(dtype);
    const uint64_t up = static_cast<uint64_t>(*i) << unused;
    return is_signed_int(dtype) ? static_cast<int64_t>(up) >> unused : static_cast<int64_t>(up >> unused);
  }
  if (is_float(dtype)) {
    std::byte storage[8];
    double out = *number;
    store_doubles(dtype, &out, storage, 1);
    load_doubles(dtype, storage, &out, 1);
    return out;
  }
  if (std::isnan(*number)) return int64_t{0};
  const double limit = std::ldexp(1.0, is_signed_int(dtype) ? bits(dtype) - 1 : bits(dtype));
  if (is_unsigned_int(dtype) && *number <= 0) return int64_t{0};
  if (*number >= limit) {
    const int unused = 64 - bits(dtype) + (is_signed_int(dtype) ? 1 : 0);
    return static_cast<int64_t>(~uint64_t{0} >> unused);
  }
  if (*number < -limit) return static_cast<int64_t>(~uint64_t{0} << (bits(dtype) - 1));
  return dtype == DType::U64 ? static_cast<int64_t>(static_cast<uint64_t>(*number)) : static_cast<int64_t>(*number);
}

}  // namespace tilewright::lang
