// Arithmetic on operands: compile-time folding, index expressions, SSA values; the rules of dtypes.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/narrow_float.h"
#include "lang/elaborator.h"
#include "lang/static_arithmetic.h"

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;
using Kind = Operand::Kind;

bool is_comparison(Operator op) {
  switch (op) {
    case Operator::Lt:
    case Operator::Le:
    case Operator::Gt:
    case Operator::Ge:
    case Operator::Eq:
    case Operator::Ne: return true;
    default: return false;
  }
}

bool is_bitwise(Operator op) {
  return op == Operator::BitAnd || op == Operator::BitOr || op == Operator::BitXor || op == Operator::Shl ||
         op == Operator::Shr;
}

ir::CompareOp compare_op(Operator op) {
  switch (op) {
    case Operator::Lt: return ir::CompareOp::Lt;
    case Operator::Le: return ir::CompareOp::Le;
    case Operator::Gt: return ir::CompareOp::Gt;
    case Operator::Ge: return ir::CompareOp::Ge;
    case Operator::Eq: return ir::CompareOp::Eq;
    default: return ir::CompareOp::Ne;
  }
}

ir::BinaryOp binary_op(Operator op) {
  switch (op) {
    case Operator::Add: return ir::BinaryOp::Add;
    case Operator::Sub: return ir::BinaryOp::Sub;
    case Operator::Mul: return ir::BinaryOp::Mul;
    case Operator::Div: return ir::BinaryOp::Div;
    case Operator::FloorDiv: return ir::BinaryOp::FloorDiv;
    case Operator::FloorMod: return ir::BinaryOp::FloorMod;
    case Operator::BitAnd:
    case Operator::And: return ir::BinaryOp::And;
    case Operator::BitOr:
    case Operator::Or: return ir::BinaryOp::Or;
    case Operator::BitXor: return ir::BinaryOp::Xor;
    case Operator::Shl: return ir::BinaryOp::Shl;
    default: return ir::BinaryOp::Shr;
  }
}

std::optional<DType> dtype_of_value(const Operand& x) {
  if (x.kind == Kind::Scalar) return x.value->type.dtype;
  if (x.kind == Kind::Index) return x.index_is_bool ? DType::Bool : DType::I64;
  return std::nullopt;
}

bool is_number(const Operand& x) { return x.as<int64_t>() || x.as<double>(); }

}  // namespace

Operand Operand::of_index(ir::Index x, bool is_bool) {
  if (const auto c = x.constant()) return is_bool ? of(*c != 0) : of(*c);
  return {.kind = Kind::Index, .index = x, .index_is_bool = is_bool};
}

bool Operand::is_bool_like() const {
  switch (kind) {
    case Kind::Static: return std::holds_alternative<bool>(constant);
    case Kind::Index: return index_is_bool;
    case Kind::Scalar: return value->type.dtype == DType::Bool;
    case Kind::Tile: return false;
  }
  return false;
}

std::string Elaborator::extent_text(ir::Index extent) {
  return ir::to_string(extent, [](const ir::Value* v) { return v->name; });
}

std::string describe(const Operand& operand) {
  switch (operand.kind) {
    case Kind::Static:
      if (const auto* v = operand.as<int64_t>()) return fmt::format("the integer {}", *v);
      if (const auto* v = operand.as<double>()) return fmt::format("the number {}", *v);
      if (const auto* v = operand.as<bool>()) return *v ? "true" : "false";
      if (const auto* v = operand.as<DType>()) return fmt::format("the dtype {}", name(*v));
      return "a text";
    case Kind::Index: return operand.index_is_bool ? "a condition" : "an i64 index";
    case Kind::Scalar: return fmt::format("a value of type {}", name(operand.value->type.dtype));
    case Kind::Tile: break;
  }
  if (operand.tile.rank() == 0) return fmt::format("an element of type {}", name(operand.tile.type().dtype));
  std::string extents;
  for (int i = 0; i < operand.tile.rank(); ++i) {
    const bool broadcast = operand.tile.axes[static_cast<size_t>(i)] == TileRef::kBroadcast;
    const std::string n =
        broadcast ? "*" : ir::to_string(operand.tile.slice(i).extent, [](const ir::Value* v) { return v->name; });
    extents += (i ? ", " : "") + n;
  }
  const bool global = operand.tile.type().space == ir::MemorySpace::Global;
  return fmt::format("a {} {}[{}]", global ? "tensor" : "tile", name(operand.tile.type().dtype), extents);
}

ir::Index Elaborator::to_index(const Operand& x, const Location& location) {
  if (const auto* v = x.as<int64_t>()) return b_.constant_index(*v);
  if (x.kind == Kind::Index && !x.index_is_bool) return x.index;
  if (x.kind == Kind::Scalar && is_int(x.value->type.dtype)) return b_.symbol(b_.cast(x.value, DType::I64));
  fail(E1020, location, fmt::format("an index must be an integer, got {}", describe(x)),
       "write cast(x, i64), or select(condition, 1, 0)");
}

ir::Index Elaborator::to_bool_index(const Operand& x, const Location& location) {
  if (const auto* v = x.as<bool>()) return b_.constant_index(*v);
  if (x.kind == Kind::Index && x.index_is_bool) return x.index;
  if (x.kind == Kind::Scalar && x.value->type.dtype == DType::Bool) {
    return ir::not_equal(b_.symbol(b_.cast(x.value, DType::I64)), b_.constant_index(0));
  }
  fail(E1020, location, fmt::format("a condition is needed here, got {}", describe(x)));
}

ir::Value* Elaborator::to_bool(const Operand& x, const Location& location) {
  if (const auto* v = x.as<bool>()) return b_.integer(DType::Bool, *v);
  if (x.kind == Kind::Index && x.index_is_bool) return b_.index_condition(x.index);
  if (x.kind == Kind::Scalar && x.value->type.dtype == DType::Bool) return x.value;
  fail(E1020, location, fmt::format("a condition is needed here, got {}", describe(x)), "compare it: x != 0");
}

ir::Value* Elaborator::constant(const StaticValue& v, DType dtype, const Location& location) {
  if (const auto* flag = std::get_if<bool>(&v); flag && dtype == DType::Bool) return b_.integer(dtype, *flag);
  const auto* integer = std::get_if<int64_t>(&v);
  const auto* real = std::get_if<double>(&v);
  if (is_float(dtype) && integer) return b_.real(dtype, static_cast<double>(*integer));
  if (is_float(dtype) && real)
    return b_.real(dtype, dtype == DType::F32 ? static_cast<double>(static_cast<float>(*real)) : *real);
  if (is_int(dtype) && integer) {
    if (fits(*integer, dtype)) return b_.integer(dtype, *integer);
    fail(E1041, location, fmt::format("{} does not fit in {}", *integer, name(dtype)),
         fmt::format("write cast({}, {}) to wrap it", *integer, name(dtype)));
  }
  std::string help =
      dtype == DType::Bool ? "write true, false or a comparison" : fmt::format("write cast(x, {})", name(dtype));
  if (real && is_int(dtype)) {
    help = fmt::format("compute in floats and cast the result, cast(f32(x) * {0}, {1}); cast({0}, {1}) alone is {2}",
                       *real, name(dtype), std::trunc(*real));
  }
  fail(E1020, location, fmt::format("{} cannot become {}", describe(Operand::of(v)), name(dtype)), std::move(help));
}

/// Implicit conversions: compile-time numbers adapt; floats widen; integers widen inside one signedness.
ir::Value* Elaborator::coerce(const Operand& x, DType dtype, const Location& location) {
  if (x.is_tile()) return coerce(read(x.tile, location), dtype, location);
  if (x.is_static()) return constant(x.constant, dtype, location);
  if (x.kind == Kind::Index && x.index_is_bool && dtype == DType::Bool) return b_.index_condition(x.index);
  if (x.kind == Kind::Index && !x.index_is_bool && dtype == DType::I64) return b_.index_value(x.index);
  const DType from = *dtype_of_value(x);
  if (x.kind == Kind::Scalar) {
    const bool same_kind = info(from).kind == info(dtype).kind;
    if (from == dtype) return x.value;
    if (same_kind && bits(dtype) > bits(from)) return b_.cast(x.value, dtype);
  }
  fail(E1020, location, fmt::format("{} is needed here, got {}", name(dtype), describe(x)),
       fmt::format("write cast(x, {})", name(dtype)));
}

DType Elaborator::common_dtype(const Operand& x, const Operand& y, std::string_view op, const Location& location) {
  const auto dx = dtype_of_value(x), dy = dtype_of_value(y);
  if (dx && !dy) return *dx;
  if (dy && !dx) return *dy;
  if (!dx) {
    if (x.as<bool>() && y.as<bool>()) return DType::Bool;
    const bool real = x.as<double>() || y.as<double>();
    if (is_number(x) && is_number(y)) {
      if (wanted_ && (is_float(*wanted_) || (!real && is_int(*wanted_)))) return *wanted_;
      return real ? DType::F32 : DType::I64;
    }
  } else if (info(*dx).kind == info(*dy).kind) {
    return bits(*dx) >= bits(*dy) ? *dx : *dy;
  }
  fail(E1020, location, fmt::format("`{}` cannot join {} and {}", op, describe(x), describe(y)),
       dx && dy ? fmt::format("convert one of them: cast(x, {})", name(is_float(*dy) ? *dy : *dx)) : "");
}

Operand Elaborator::unary(Operator op, const Operand& x, const Location& location) {
  if (op == Operator::Not) {
    if (const auto* v = x.as<bool>()) return Operand::of(!*v);
    if (x.kind == Kind::Index && x.index_is_bool) return Operand::of_index(ir::logical_not(x.index), true);
    return Operand::of(b_.unary(ir::UnaryOp::Not, to_bool(x, location)));
  }
  if (op == Operator::BitNot) {
    if (const auto* v = x.as<int64_t>()) return Operand::of(~*v);
    const auto dtype = dtype_of_value(x);
    if (!dtype || !is_int(*dtype))
      fail(E1020, location, fmt::format("`~` needs an integer, got {}", describe(x)), "write `not` for conditions");
    return Operand::of(b_.unary(ir::UnaryOp::Not, coerce(x, *dtype, location)));
  }
  if (x.kind == Kind::Index && !x.index_is_bool) return Operand::of_index(x.index * -1);
  return math(ir::UnaryOp::Neg, x, location);
}

Operand Elaborator::binary(Operator op, Operand x, Operand y, const Location& location) {
  const auto integer = [](const Operand& v) {
    return v.is_index_like() || (v.kind == Kind::Scalar && is_int(v.value->type.dtype));
  };
  if (x.is_static() && y.is_static()) {
    if (auto folded = fold_static(op, x.constant, y.constant)) return Operand::of(std::move(*folded));
    if (op == Operator::Div && x.as<int64_t>() && y.as<int64_t>()) {
      fail(E1021, location, "`/` does not divide integers",
           "write `//` (floor) or `%`; make one side a float for a quotient: 1.0 / 3");
    }
    fail(E1020, location, fmt::format("`{}` cannot join {} and {}", spelling(op), describe(x), describe(y)));
  }
  if (op == Operator::Div && (integer(x) || x.is_static()) && (integer(y) || y.is_static()) && !x.as<double>() &&
      !y.as<double>()) {
    fail(E1021, location, "`/` does not divide integers",
         "write `//` (floor) or `%`; for a quotient: cast(a, f32) / cast(b, f32)");
  }
  if (op == Operator::And || op == Operator::Or) {
    if (x.kind != Kind::Scalar && y.kind != Kind::Scalar) {
      const ir::Index a = to_bool_index(x, location), c = to_bool_index(y, location);
      return Operand::of_index(op == Operator::And ? ir::logical_and(a, c) : ir::logical_or(a, c), true);
    }
    if (const auto* known = y.as<bool>()) {
      return *known == (op == Operator::And) ? x : y;
    }
    ir::Value* a = to_bool(x, location);
    return Operand::of(b_.binary(binary_op(op), a, to_bool(y, location)));
  }
  const bool indices = in_index_ ? integer(x) && integer(y) : x.is_index_like() && y.is_index_like();
  if (indices && !is_bitwise(op)) return index_binary(op, to_index(x, location), to_index(y, location));
  const DType dtype = common_dtype(x, y, spelling(op), location);
  if (!is_comparison(op)) {
    if (is_bitwise(op) && is_float(dtype))
      fail(E1020, location, fmt::format("`{}` works on integers, got {}", spelling(op), name(dtype)),
           "bitcast(x, u32) gives the bits of an f32");
    const bool flags = dtype == DType::Bool && !is_bitwise(op);
    if (flags)
      fail(E1020, location, fmt::format("`{}` does not work on bool", spelling(op)),
           "use `and`, `or`, `not`, or select(c, 1, 0)");
    if (op == Operator::Div && !is_float(dtype))
      fail(E1021, location, "`/` does not divide integers", "write `//` (floor) or `%`");
    if ((op == Operator::FloorDiv || op == Operator::FloorMod) && is_float(dtype)) {
      fail(E1020, location, fmt::format("`{}` works on integers, got {}", spelling(op), name(dtype)),
           "write floor(a / b)");
    }
  }
  return value_binary(op, x, y, dtype);
}

Operand Elaborator::value_binary(Operator op, const Operand& x, const Operand& y, DType dtype) {
  const Location place = b_.location();
  ir::Value* a = coerce(x, dtype, place);
  ir::Value* c = coerce(y, dtype, place);
  if (is_comparison(op)) return Operand::of(b_.compare(compare_op(op), a, c));
  return Operand::of(b_.binary(binary_op(op), a, c));
}

Operand Elaborator::index_binary(Operator op, ir::Index x, ir::Index y) {
  switch (op) {
    case Operator::Add: return Operand::of_index(x + y);
    case Operator::Sub: return Operand::of_index(x - y);
    case Operator::Mul: return Operand::of_index(x * y);
    case Operator::FloorDiv: return Operand::of_index(ir::floordiv(x, y));
    case Operator::FloorMod: return Operand::of_index(ir::floormod(x, y));
    case Operator::Lt: return Operand::of_index(ir::less(x, y), true);
    case Operator::Le: return Operand::of_index(ir::less_equal(x, y), true);
    case Operator::Gt: return Operand::of_index(ir::less(y, x), true);
    case Operator::Ge: return Operand::of_index(ir::less_equal(y, x), true);
    case Operator::Eq: return Operand::of_index(ir::equal(x, y), true);
    default: return Operand::of_index(ir::not_equal(x, y), true);
  }
}

Operand Elaborator::min_max(bool is_max, Operand x, Operand y, const Location& location) {
  if (x.is_static() && y.is_static()) {
    if (auto folded = fold_min_max(is_max, x.constant, y.constant)) return Operand::of(std::move(*folded));
  }
  const bool scalar = x.kind == Kind::Scalar || y.kind == Kind::Scalar;
  const auto integer = [](const Operand& v) {
    return v.is_index_like() || (v.kind == Kind::Scalar && is_int(v.value->type.dtype));
  };
  if ((!scalar || in_index_) && integer(x) && integer(y)) {
    const ir::Index a = to_index(x, location), c = to_index(y, location);
    return Operand::of_index(is_max ? ir::max(a, c) : ir::min(a, c));
  }
  const DType dtype = common_dtype(x, y, is_max ? "max" : "min", location);
  if (dtype == DType::Bool) fail(E1020, location, "min and max do not work on bool", "use `and`, `or`");
  ir::Value* a = coerce(x, dtype, location);
  return Operand::of(b_.binary(is_max ? ir::BinaryOp::Max : ir::BinaryOp::Min, a, coerce(y, dtype, location)));
}

Operand Elaborator::select(const Operand& condition, Operand yes, Operand no, const Location& location) {
  if (const auto* known = condition.as<bool>()) return *known ? yes : no;
  const bool loaded = condition.kind == Kind::Scalar && !in_index_;
  const bool integers = yes.is_index_like() && no.is_index_like();
  const bool undecided = yes.is_static() && no.is_static() && wanted_ && *wanted_ != DType::I64;
  if (integers && !loaded && !undecided) {
    return Operand::of_index(
        ir::select(to_bool_index(condition, location), to_index(yes, location), to_index(no, location)));
  }
  const bool flags = yes.is_bool_like() && no.is_bool_like() && yes.kind != Kind::Scalar && no.kind != Kind::Scalar;
  if (flags && condition.kind != Kind::Scalar) {
    return Operand::of_index(
        ir::select(to_bool_index(condition, location), to_bool_index(yes, location), to_bool_index(no, location)),
        true);
  }
  const DType dtype = common_dtype(yes, no, "select", location);
  ir::Value* holds = to_bool(condition, location);
  ir::Value* a = coerce(yes, dtype, location);
  return Operand::of(b_.select(holds, a, coerce(no, dtype, location)));
}

Operand Elaborator::math(ir::UnaryOp op, const Operand& x, const Location& location) {
  if (x.is_static()) {
    if (auto folded = fold_math(op, x.constant)) return Operand::of(std::move(*folded));
  }
  const bool any_number = op == ir::UnaryOp::Neg || op == ir::UnaryOp::Abs;
  const auto dtype = dtype_of_value(x);
  if (dtype && is_float(*dtype)) return Operand::of(b_.unary(op, x.value));
  if (dtype && any_number && is_int(*dtype)) {
    if (x.kind == Kind::Index && op == ir::UnaryOp::Abs) return Operand::of_index(ir::max(x.index, x.index * -1));
    return Operand::of(b_.unary(op, coerce(x, *dtype, location)));
  }
  fail(E1020, location,
       fmt::format("`{}` works on {}, got {}", op == ir::UnaryOp::Neg ? "-" : name(op),
                   any_number ? "numbers" : "floats", describe(x)),
       dtype && is_int(*dtype) ? fmt::format("write {}(cast(x, f32))", name(op)) : "");
}

Operand Elaborator::power(const Operand& x, const Operand& y, const Location& location) {
  const auto number = [](const Operand& v) -> std::optional<double> {
    if (const auto* r = v.as<double>()) return *r;
    if (const auto* i = v.as<int64_t>()) return static_cast<double>(*i);
    return std::nullopt;
  };
  const auto a = number(x), c = number(y);
  if (a && c) return Operand::of(std::pow(*a, *c));
  const DType dtype = common_dtype(x, y, "pow", location);
  if (!is_float(dtype))
    fail(E1020, location, fmt::format("`pow` works on floats, got {}", name(dtype)), "write cast(x, f32)");
  ir::Value* base = coerce(x, dtype, location);
  return Operand::of(b_.binary(ir::BinaryOp::Pow, base, coerce(y, dtype, location)));
}

Operand Elaborator::cast(const Operand& x, DType dtype, const Location& location) {
  if (x.is_static()) {
    if (auto made = cast_static(x.constant, dtype)) return Operand::of(constant(*made, compute_type(dtype), location));
    fail(E1020, location, fmt::format("{} cannot be cast to {}", describe(x), name(dtype)));
  }
  ir::Value* value = coerce(x, *dtype_of_value(x), location);
  value = b_.cast(value, dtype);
  return Operand::of(b_.cast(value, compute_type(dtype)));
}

Operand Elaborator::bitcast(const Operand& x, DType dtype, const Location& location) {
  const auto from = dtype_of_value(x);
  if (!from || bits(*from) != bits(dtype) || *from == DType::Bool || dtype == DType::Bool || is_storage_float(dtype)) {
    fail(E1020, location,
         fmt::format("bitcast needs a value as wide as {} ({} bits), got {}", name(dtype), bits(dtype), describe(x)),
         "f16 and bf16 values are f32 once loaded; read their bits from a u16 tensor");
  }
  ir::Value* value = coerce(x, *from, location);
  if (*from == dtype) return Operand::of(value);
  return Operand::of(
      b_.op(ir::OpKind::Unary, {value}, ir::UnaryAttributes{ir::UnaryOp::Bitcast}, {ir::Type::scalar(dtype)})
          ->result());
}

}  // namespace tilewright::lang
