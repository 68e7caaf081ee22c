// Arithmetic on (value, bound): `v` is the result in double, `e` how far any correct implementation may be from it.
//
// Guarantees: for every true input within e of v, and every implementation that rounds each operation to the compute
// type (or contracts a·b + c, or uses a math function within its budget), the implementation's result is within the
// returned e. Infinity means nothing is known. A result with e = 0 is what every implementation gives, bit for bit.
#pragma once

#include <cmath>
#include <limits>

#include "interp/math_budget.h"
#include "interp/scalar.h"
#include "ir/real_math.h"

namespace tilewright::interp {

inline constexpr double kUnknown = std::numeric_limits<double>::infinity();

struct Bounded {
  double v = 0;
  double e = 0;
  bool is_exact() const { return e == 0; }
  bool is_unknown() const { return !(e < kUnknown); }
};

/// Rounding of a float type. `u` includes the interpreter's own rounding in double.
struct Precision {
  DType dtype;
  double u;
  double eta;       ///< absolute error of a subnormal result
  double smallest;  ///< smallest normal number
  double largest;

  static Precision of(DType dtype) {
    const double own = std::ldexp(1.0, -52);
    switch (dtype) {
      case DType::F64: return {dtype, 2 * own, 0x1p-1074, 0x1p-1022, largest_finite(dtype)};
      case DType::F16: return {dtype, unit_roundoff(dtype) + own, 0x1p-25, 0x1p-14, largest_finite(dtype)};
      case DType::BF16: return {dtype, unit_roundoff(dtype) + own, 0x1p-134, 0x1p-126, largest_finite(dtype)};
      case DType::E4M3: return {dtype, unit_roundoff(dtype) + own, 0x1p-10, 0x1p-6, largest_finite(dtype)};
      case DType::E5M2: return {dtype, unit_roundoff(dtype) + own, 0x1p-17, 0x1p-14, largest_finite(dtype)};
      default: return {DType::F32, unit_roundoff(DType::F32) + own, 0x1p-149, 0x1p-126, largest_finite(DType::F32)};
    }
  }
};

/// A result that is not finite: certain unless an operand is unknown.
inline Bounded certain_unless(double v, bool unknown) { return {v, unknown ? kUnknown : 0}; }

/// True when some implementation's value may already be infinite, with v's sign: v is so close to overflow that its
/// rounding decides. Such a value keeps its finite v and e, so that a result that does not care (exp2 of something
/// hugely negative) stays decided.
inline bool may_be_infinite(Bounded x, const Precision& p) {
  return std::isfinite(x.v) && std::fabs(x.v) + x.e > p.largest;
}

/// Types whose conversions end at the largest finite value instead of infinity.
inline bool saturates(DType dtype) { return dtype == DType::E4M3 || dtype == DType::E5M2; }

/// A value within `e` of v, cut off at the largest of the type.
inline Bounded saturated(double v, double e, double largest) {
  const auto cut = [&](double x) { return std::fmin(std::fmax(x, -largest), largest); };
  return {cut(v), std::fmax(cut(v + e) - cut(v), cut(v) - cut(v - e))};
}

/// Adds `roundings` roundings of p and an absolute error `eta` to a result known to be within e of v, and handles
/// overflow.
inline Bounded settle(double v, double e, const Precision& p, double roundings, double eta) {
  if (!(e < kUnknown)) return {v, kUnknown};
  if (!std::isfinite(v)) return {v, 0};
  const double widened = e + roundings * (p.u * (std::fabs(v) + e)) + eta;
  if (saturates(p.dtype)) return saturated(v, widened, p.largest);
  if (std::fabs(v) - widened > p.largest * (1 + 2 * p.u)) return {std::copysign(kUnknown, v), 0};
  // Compute types remember by their size that they may be infinite; a stored f16 would lose it when it is widened.
  const bool is_stored = p.dtype == DType::F16 || p.dtype == DType::BF16;
  return {v, is_stored && std::fabs(v) + widened > p.largest ? kUnknown : widened};
}
inline Bounded settle(double v, double e, const Precision& p, double roundings = 1) {
  return settle(v, e, p, roundings, p.eta);
}
/// A result computed from operands that may be infinite is only known when it would be, too.
inline Bounded unless_infinite(Bounded result, Bounded x, Bounded y, const Precision& p) {
  const bool doubtful = (may_be_infinite(x, p) || may_be_infinite(y, p)) && !may_be_infinite(result, p);
  return doubtful && std::isfinite(result.v) ? Bounded{result.v, kUnknown} : result;
}

/// The result of one correctly rounded operation whose operands are exact and whose double result is exact or rounds
/// the same way.
inline Bounded exactly_rounded(double v, const Precision& p) { return {round_to(p.dtype, v), 0}; }

inline Bounded add(Bounded x, Bounded y, const Precision& p) {
  const double v = x.v + y.v;
  if (!std::isfinite(v)) return certain_unless(v, x.is_unknown() || y.is_unknown());
  // f64: the hardware's own addition; f32: a double sum of two floats rounds like the exact one.
  if (x.is_exact() && y.is_exact() && std::fabs(v) <= p.largest) return exactly_rounded(v, p);
  // A sum of floats that is subnormal is exact: no absolute error.
  return unless_infinite(settle(v, x.e + y.e, p, 1, 0), x, y, p);
}
inline Bounded negate(Bounded x) { return {-x.v, x.e}; }

inline Bounded multiply(Bounded x, Bounded y, const Precision& p) {
  const double v = x.v * y.v;
  const bool unknown = x.is_unknown() || y.is_unknown();
  if (!std::isfinite(v)) {
    const bool sign_open = (x.e > 0 && std::fabs(x.v) <= x.e) || (y.e > 0 && std::fabs(y.v) <= y.e);
    return certain_unless(v, unknown || sign_open);
  }
  if (unknown) return {v, kUnknown};
  const auto is_zero = [](Bounded b) { return b.v == 0 && b.e == 0; };
  if ((is_zero(x) && !may_be_infinite(y, p)) || (is_zero(y) && !may_be_infinite(x, p))) return {v, 0};
  // A product may be contracted into a later addition: only a representable one is the same everywhere.
  if (x.is_exact() && y.is_exact() && round_to(p.dtype, v) == v &&
      (p.dtype != DType::F64 || std::fma(x.v, y.v, -v) == 0)) {
    return {v, 0};
  }
  return unless_infinite(settle(v, std::fabs(x.v) * y.e + std::fabs(y.v) * x.e + x.e * y.e, p), x, y, p);
}

inline Bounded divide(Bounded x, Bounded y, const Precision& p) {
  const double v = x.v / y.v;
  const bool unknown = x.is_unknown() || y.is_unknown() || (y.e > 0 && std::fabs(y.v) <= y.e);
  if (!std::isfinite(v)) return certain_unless(v, unknown);
  if (unknown) return {v, kUnknown};
  if (std::isinf(y.v)) return {v, 0};
  const double spread = (x.e + std::fabs(v) * y.e) / (std::fabs(y.v) - y.e);
  return unless_infinite(settle(v, spread, p, 2 * kDivisionBudget.ulps), x, y, p);
}

inline Bounded maximum(Bounded x, Bounded y) {
  const double v = ir::max_or_nan(x.v, y.v);
  const bool unknown = x.is_unknown() || y.is_unknown();
  if (!std::isfinite(v) || unknown) return certain_unless(v, unknown);
  const double high = std::fmax(x.v + x.e, y.v + y.e), low = std::fmax(x.v - x.e, y.v - y.e);
  return {v, std::fmax(high - v, v - low)};
}
inline Bounded minimum(Bounded x, Bounded y) { return negate(maximum(negate(x), negate(y))); }

/// f evaluated on the ends of x's interval: right for functions monotone on it.
template <typename F>
Bounded monotone(F f, Bounded x, const Precision& p, const MathBudget& budget) {
  const double v = f(x.v);
  if (x.is_unknown()) return {v, kUnknown};
  double spread = 0;
  if (x.e > 0) {
    const double low = f(x.v - x.e), high = f(x.v + x.e);
    if (std::isnan(low) != std::isnan(v) || std::isnan(high) != std::isnan(v)) return {v, kUnknown};
    if (!std::isnan(v)) spread = std::fmax(std::fabs(low - v), std::fabs(high - v));
  }
  if (may_be_infinite(x, p)) {
    const double end = f(std::copysign(kUnknown, x.v));
    spread = std::isnan(end) != std::isnan(v) ? kUnknown : std::fmax(spread, std::fabs(end - v));
  }
  if (!(spread < kUnknown)) return {v, std::isfinite(v) ? kUnknown : 0};
  if (!std::isfinite(v) || std::isinf(x.v)) return {v, 0};
  return settle(v, spread + budget.absolute * p.u + (budget.may_flush ? p.smallest : 0), p, 2 * budget.ulps);
}

/// Rounding to an integer value: all candidates lie between the rounded ends.
template <typename F>
Bounded step(F f, Bounded x) {
  const double v = f(x.v);
  if (x.is_unknown() || !std::isfinite(v)) return certain_unless(v, x.is_unknown());
  return {v, std::fmax(f(x.v + x.e) - v, v - f(x.v - x.e))};
}

Bounded apply(ir::UnaryOp op, Bounded x, const Precision& p);
Bounded apply(ir::BinaryOp op, Bounded x, Bounded y, const Precision& p);

/// The outcome of a comparison and whether every implementation agrees on it.
struct BoundedBool {
  bool v = false;
  bool tainted = false;
};
BoundedBool compare(ir::CompareOp op, Bounded x, Bounded y);

}  // namespace tilewright::interp
