// Math functions on f64, which no special function unit serves: argument reduction and series, within the budgets of
// interp/math_budget.h. Sources: Cody and Waite, "Software Manual for the Elementary Functions" (reductions); Kummer's
// series of the error function, whose terms are all positive.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>
#include <numbers>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::UnaryOp;
using ir::thread::Op;

namespace {

constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
constexpr int64_t kQuietNan = 0x7ff8000000000000;

/// 1/0!, 1/1!, …
template <size_t N>
constexpr std::array<double, N> inverse_factorials() {
  std::array<double, N> out{};
  double f = 1;
  for (size_t i = 0; i < N; ++i) {
    if (i > 0) f *= static_cast<double>(i);
    out[i] = 1 / f;
  }
  return out;
}

class Math64 {
 public:
  explicit Math64(Builder& b) : b_(b) {}
  static Operand c(double x) { return Operand::f64(x); }

  Operand exp(Operand x) {
    const Operand n = nearest(mul(clamped(x, 800), c(std::numbers::log2e)));
    const Operand r = fma(n, c(-kLn2Low), fma(n, c(-kLn2High), clamped(x, 800)));
    return keep_nan(x, scaled(series(r), n));
  }
  Operand exp2(Operand x) {
    const Operand n = nearest(clamped(x, 1100));
    return keep_nan(x, scaled(series(mul(sub(clamped(x, 1100), n), c(std::numbers::ln2))), n));
  }
  /// log and log2: exponent and mantissa m in [sqrt(1/2), sqrt(2)); log m = 2 artanh((m - 1) / (m + 1)).
  Operand log(Operand x, bool base2) {
    const Operand tiny = less(x, c(0x1p-1022));
    const Operand y = pick(tiny, mul(x, c(0x1p54)), x);
    const Operand shifted = b_.sub(Scalar::S64, y, kSqrtHalf);
    const Operand exponent =
        add(b_.convert(Scalar::F64, Scalar::S64, b_.shr(Scalar::S64, shifted, 52)), pick(tiny, c(-54), c(0)));
    const Operand m = b_.add(Scalar::S64, b_.bit_and(Scalar::B64, shifted, (int64_t{1} << 52) - 1), kSqrtHalf);
    const Operand f = sub(m, c(1));
    const Operand s = div(f, add(m, c(1))), z = mul(s, s);
    Operand p = c(1.0 / 25);
    for (int k = 23; k >= 3; k -= 2) p = fma(p, z, c(1.0 / k));
    // log m = f - s (f - 2 z p): the large part of it is exact.
    const Operand tail = mul(s, sub(f, mul(mul(c(2), z), p)));
    Operand out;
    if (base2) {
      const Operand hi = sub(f, tail), lo = sub(sub(f, hi), tail);
      const Operand wide = mul(hi, c(std::numbers::log2e));
      const Operand lost = fma(hi, c(kLog2eLow), fma(hi, c(std::numbers::log2e), neg(wide)));
      out = add(exponent, add(wide, add(lost, mul(lo, c(std::numbers::log2e)))));
    } else {
      out = fma(exponent, c(kLn2High), sub(f, sub(tail, mul(exponent, c(kLn2Low)))));
    }
    const double infinity = std::numeric_limits<double>::infinity();
    out = pick(b_.compare(Compare::Eq, Scalar::F64, x, c(infinity)), x, out);
    out = pick(b_.compare(Compare::Eq, Scalar::F64, x, c(0)), c(-infinity), out);
    return pick(b_.compare(Compare::Ge, Scalar::F64, x, c(0)), out, kQuietNan);
  }
  Operand sigmoid(Operand x) { return div(c(1), add(c(1), exp(neg(x)))); }
  Operand tanh(Operand x) {
    const Operand a = abs(x), big = sub(c(1), div(c(2), add(exp(add(a, a)), c(1))));
    const Operand y = add(x, x);  // expm1(y) / (expm1(y) + 2) near 0
    constexpr auto f = inverse_factorials<20>();
    Operand p = c(f[19]);
    for (size_t k = 18; k >= 1; --k) p = fma(p, y, c(f[k]));
    const Operand e = mul(p, y), small = div(e, add(e, c(2)));
    return keep_nan(x, pick(less(a, c(0.3)), small, with_sign_of(big, x)));
  }
  /// erf x = 2/sqrt(pi) exp(-x^2) x (1 + y/3 (1 + y/5 (…))), y = 2 x^2.
  Operand erf(Operand x) {
    const Operand a = b_.min(Scalar::F64, abs(x), c(6)), z = mul(a, a), y = add(z, z);
    Operand s = c(1);
    for (int n = 140; n >= 1; --n) s = fma(mul(y, c(1.0 / (2 * n + 1))), s, c(1));
    const Operand low = fma(a, a, neg(z));  // exp(-(z + low))
    const Operand e = mul(exp(neg(z)), sub(c(1), low));
    const Operand out = mul(mul(c(2 * std::numbers::inv_sqrtpi), a), mul(e, s));
    return keep_nan(x, with_sign_of(b_.min(Scalar::F64, out, c(1)), x));
  }
  Operand sine(Operand x, bool is_cosine) {
    const Operand k = nearest(mul(x, c(2 / std::numbers::pi)));
    Operand r = fma(k, c(-0x1.921fb54442d18p+0), x);
    r = fma(k, c(-0x1.1a62633145c07p-54), r);
    Operand q = b_.convert(Scalar::S32, Scalar::F64, k);
    if (is_cosine) q = b_.add(Scalar::S32, q, 1);
    const Operand z = mul(r, r);
    constexpr auto f = inverse_factorials<20>();
    Operand s = c(f[19]), d = c(f[18]);
    for (int n = 17; n >= 3; n -= 2) s = fma(neg(s), z, c(f[static_cast<size_t>(n)]));
    for (int n = 16; n >= 2; n -= 2) d = fma(neg(d), z, c(f[static_cast<size_t>(n)]));
    const Operand sine_part = fma(neg(mul(s, z)), r, r), cosine_part = fma(neg(d), z, c(1));
    const Operand odd = b_.compare(Compare::Ne, Scalar::S32, b_.bit_and(Scalar::S32, q, 1), 0);
    const Operand flips = b_.compare(Compare::Ne, Scalar::S32, b_.bit_and(Scalar::S32, q, 2), 0);
    const Operand out = pick(odd, cosine_part, sine_part);
    return pick(flips, neg(out), out);
  }
  Operand power(Operand x, Operand y) {
    const Operand l = log(abs(x), true), hi = mul(y, l);
    const Operand lost = fma(y, l, neg(hi));
    const Operand e = exp2(hi);
    Operand out = pick(less(abs(hi), c(1100)), fma(mul(e, c(std::numbers::ln2)), lost, e), e);
    const Operand whole = b_.compare(Compare::Eq, Scalar::F64, truncated(y), y), half = mul(y, c(0.5));
    const Operand is_odd = b_.logical_and(whole, b_.compare(Compare::Ne, Scalar::F64, truncated(half), half));
    const Operand negative = less(x, c(0));
    out = pick(b_.logical_and(negative, is_odd), neg(out), out);
    out = pick(b_.logical_and(negative, b_.logical_not(whole)), kQuietNan, out);
    out = pick(b_.compare(Compare::Eq, Scalar::F64, x, c(1)), c(1), out);
    return pick(b_.compare(Compare::Eq, Scalar::F64, y, c(0)), c(1), out);
  }

 private:
  static constexpr int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  static constexpr double kLog2eLow = 0x1.777d0ffda0d24p-56;

  Operand fma(Operand a, Operand b, Operand d) { return b_.mad(Scalar::F64, a, b, d); }
  Operand mul(Operand a, Operand b) { return b_.mul(Scalar::F64, a, b); }
  Operand add(Operand a, Operand b) { return b_.add(Scalar::F64, a, b); }
  Operand sub(Operand a, Operand b) { return b_.sub(Scalar::F64, a, b); }
  Operand div(Operand a, Operand b) { return b_.div(Scalar::F64, a, b); }
  Operand neg(Operand a) { return b_.unary(Op::Neg, Scalar::F64, a); }
  Operand abs(Operand a) { return b_.unary(Op::Abs, Scalar::F64, a); }
  Operand nearest(Operand a) { return b_.unary(Op::Round, Scalar::F64, a, 0); }
  Operand truncated(Operand a) { return b_.unary(Op::Round, Scalar::F64, a, 3); }
  Operand less(Operand a, Operand b) { return b_.compare(Compare::Lt, Scalar::F64, a, b); }
  Operand pick(Operand p, Operand yes, Operand no) { return b_.select(Scalar::F64, p, yes, no); }
  Operand keep_nan(Operand x, Operand y) { return pick(b_.compare(Compare::Ne, Scalar::F64, x, x), x, y); }
  Operand clamped(Operand x, double limit) { return b_.min(Scalar::F64, b_.max(Scalar::F64, x, c(-limit)), c(limit)); }
  Operand with_sign_of(Operand magnitude, Operand x) {
    const int64_t sign = std::numeric_limits<int64_t>::min();
    return b_.bit_or(Scalar::B64, b_.bit_and(Scalar::B64, magnitude, ~sign), b_.bit_and(Scalar::B64, x, sign));
  }
  /// exp r for |r| <= 0.35.
  Operand series(Operand r) {
    constexpr auto f = inverse_factorials<15>();
    Operand p = c(f[14]);
    for (size_t k = 14; k-- > 0;) p = fma(p, r, c(f[k]));
    return p;
  }
  /// y 2^n for |n| < 2000, in two steps so that neither power leaves the range of f64.
  Operand scaled(Operand y, Operand n) {
    const Operand whole = b_.convert(Scalar::S32, Scalar::F64, n);
    const Operand first = b_.shr(Scalar::S32, whole, 1), second = b_.sub(Scalar::S32, whole, first);
    const auto power = [&](Operand e) {
      const Operand biased = b_.convert(Scalar::S64, Scalar::S32, b_.add(Scalar::S32, e, 1023));
      return b_.shl(Scalar::B64, biased, 52);
    };
    return mul(mul(y, power(first)), power(second));
  }

  Builder& b_;
};

}  // namespace

Operand Lowering::unary_f64(UnaryOp op, Operand x) {
  Math64 m(b_);
  switch (op) {
    case UnaryOp::Exp: return m.exp(x);
    case UnaryOp::Exp2: return m.exp2(x);
    case UnaryOp::Log: return m.log(x, false);
    case UnaryOp::Log2: return m.log(x, true);
    case UnaryOp::Tanh: return m.tanh(x);
    case UnaryOp::Erf: return m.erf(x);
    case UnaryOp::Sigmoid: return m.sigmoid(x);
    case UnaryOp::Sin: return m.sine(x, false);
    case UnaryOp::Cos: return m.sine(x, true);
    default: unsupported({}, fmt::format("{} on f64", ir::name(op)));
  }
}

Operand Lowering::power_f64(Operand x, Operand y) { return Math64(b_).power(x, y); }

}  // namespace tilewright::plan::gpu
