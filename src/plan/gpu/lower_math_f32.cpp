// Functions of f32 from the approximations of the special function unit.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::UnaryOp;
using ir::thread::Op;

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

Operand Lowering::unary_f32(UnaryOp op, Operand x) {
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

Operand Lowering::power_f32(Operand x, Operand y) { return Math(b_).power(x, y); }

}  // namespace tilewright::plan::gpu
