#include "interp/bounded.h"

namespace tilewright::interp {
namespace {

double round_even(double x) { return std::nearbyint(x); }

Bounded sine_or_cosine(ir::UnaryOp op, Bounded x, const Precision& p) {
  const double v = evaluate(op, x.v);
  if (x.is_unknown() || !std::isfinite(v)) return certain_unless(v, x.is_unknown());
  if (may_be_infinite(x, p)) return {v, kUnknown};
  if (std::fabs(x.v) > kLargestAngle) return {v, 2};
  const MathBudget budget = math_budget(op);
  return settle(v, std::fmin(x.e, 2.0) + budget.absolute * p.u, p, 2 * budget.ulps);
}

Bounded power(Bounded x, Bounded y, const Precision& p) {
  const double v = std::pow(x.v, y.v);
  const bool moving = x.e > 0 || y.e > 0;
  if (x.is_unknown() || y.is_unknown() || (moving && x.v - x.e <= 0)) return {v, kUnknown};
  if (may_be_infinite(x, p) || may_be_infinite(y, p)) return {v, kUnknown};
  double spread = 0;
  if (moving) {
    for (const double bx : {x.v - x.e, x.v + x.e}) {
      for (const double by : {y.v - y.e, y.v + y.e}) spread = std::fmax(spread, std::fabs(std::pow(bx, by) - v));
    }
  }
  if (!std::isfinite(v)) return certain_unless(v, moving);
  return settle(v, spread + p.smallest, p, 2 * kPowBudget.ulps);
}

/// x - y·floor(x / y): certain when the quotient's floor is.
Bounded float_floor_mod(Bounded x, Bounded y, const Precision& p) {
  const Bounded quotient = step([](double q) { return std::floor(q); }, divide(x, y, p));
  const double v = x.v - quotient.v * y.v;
  if (quotient.e > 0 || !std::isfinite(v)) return {v, quotient.e > 0 || x.e > 0 || y.e > 0 ? kUnknown : 0};
  return add(x, negate(multiply(quotient, y, p)), p);
}

}  // namespace

Bounded apply(ir::UnaryOp op, Bounded x, const Precision& p) {
  switch (op) {
    case ir::UnaryOp::Neg: return negate(x);
    case ir::UnaryOp::Abs: return {std::fabs(x.v), x.e};
    case ir::UnaryOp::Exp:
    case ir::UnaryOp::Exp2:
    case ir::UnaryOp::Log:
    case ir::UnaryOp::Log2:
    case ir::UnaryOp::Tanh:
    case ir::UnaryOp::Erf:
    case ir::UnaryOp::Sigmoid:
    case ir::UnaryOp::Sqrt: return monotone([op](double v) { return evaluate(op, v); }, x, p, math_budget(op));
    case ir::UnaryOp::Rsqrt:
      if (x.e > 0 && x.v - x.e <= 0) return {evaluate(op, x.v), kUnknown};
      return monotone([op](double v) { return evaluate(op, v); }, x, p, math_budget(op));
    case ir::UnaryOp::Sin:
    case ir::UnaryOp::Cos: return sine_or_cosine(op, x, p);
    case ir::UnaryOp::Floor: return step([](double v) { return std::floor(v); }, x);
    case ir::UnaryOp::Ceil: return step([](double v) { return std::ceil(v); }, x);
    case ir::UnaryOp::Round: return step(round_even, x);
    case ir::UnaryOp::IsNan:
    case ir::UnaryOp::Not:
    case ir::UnaryOp::Bitcast: return x;
  }
  return x;
}

Bounded apply(ir::BinaryOp op, Bounded x, Bounded y, const Precision& p) {
  switch (op) {
    case ir::BinaryOp::Add: return add(x, y, p);
    case ir::BinaryOp::Sub: return add(x, negate(y), p);
    case ir::BinaryOp::Mul: return multiply(x, y, p);
    case ir::BinaryOp::Div: return divide(x, y, p);
    case ir::BinaryOp::FloorDiv: return step([](double v) { return std::floor(v); }, divide(x, y, p));
    case ir::BinaryOp::FloorMod: return float_floor_mod(x, y, p);
    case ir::BinaryOp::Min: return minimum(x, y);
    case ir::BinaryOp::Max: return maximum(x, y);
    case ir::BinaryOp::Pow: return power(x, y, p);
    case ir::BinaryOp::And:
    case ir::BinaryOp::Or:
    case ir::BinaryOp::Xor:
    case ir::BinaryOp::Shl:
    case ir::BinaryOp::Shr: return {std::nan(""), kUnknown};
  }
  return x;
}

BoundedBool compare(ir::CompareOp op, Bounded x, Bounded y) {
  const bool v = evaluate(op, x.v, y.v);
  const double margin = x.e + y.e;
  if (margin == 0) return {v, false};
  if (!(margin < kUnknown)) return {v, true};
  if (std::isnan(x.v) || std::isnan(y.v)) return {v, false};
  return {v, !(std::fabs(x.v - y.v) > margin)};
}

}  // namespace tilewright::interp
