// How far a correct implementation of a math function may be from the true value: |result - f(x)| <= ulps·2u·|f(x)| +
// absolute·u, u the unit roundoff of the compute type. The interpreter's bounds, the accuracy tables and the generated
// code answer to this one table (docs/semantics.md states it to users).
#pragma once

#include "ir/attributes.h"

namespace tilewright::interp {

struct MathBudget {
  double ulps = 0;
  double absolute = 0;     ///< in units of u; for results that pass through zero (log near 1, sin near multiples of pi)
  bool may_flush = false;  ///< results below the smallest normal number may become zero
};

constexpr MathBudget math_budget(ir::UnaryOp op) {
  switch (op) {
    case ir::UnaryOp::Exp:
    case ir::UnaryOp::Exp2: return {.ulps = 4, .may_flush = true};
    case ir::UnaryOp::Log:
    case ir::UnaryOp::Log2: return {.ulps = 4, .absolute = 1};
    case ir::UnaryOp::Tanh:
    case ir::UnaryOp::Erf: return {.ulps = 4, .may_flush = true};
    case ir::UnaryOp::Sigmoid: return {.ulps = 4, .may_flush = true};
    case ir::UnaryOp::Rsqrt: return {.ulps = 4};
    case ir::UnaryOp::Sqrt: return {.ulps = 1};
    case ir::UnaryOp::Sin:
    case ir::UnaryOp::Cos: return {.ulps = 4, .absolute = 4};
    case ir::UnaryOp::Neg:
    case ir::UnaryOp::Abs:
    case ir::UnaryOp::Not:
    case ir::UnaryOp::Floor:
    case ir::UnaryOp::Ceil:
    case ir::UnaryOp::Round:
    case ir::UnaryOp::IsNan:
    case ir::UnaryOp::Bitcast: return {};
  }
  return {};
}
inline constexpr MathBudget kPowBudget = {.ulps = 16, .may_flush = true};
inline constexpr MathBudget kDivisionBudget = {.ulps = 1};
/// sin and cos are only promised up to this magnitude; beyond it any value in [-1, 1] is accepted.
inline constexpr double kLargestAngle = 32768;

}  // namespace tilewright::interp
