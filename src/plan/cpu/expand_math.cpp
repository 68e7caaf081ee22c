#include "plan/cpu/expand_math.h"

#include <array>
#include <limits>
#include <numbers>
#include <vector>

#include "plan/cpu/lane_math.h"
#include "target/exp_polynomial.h"

namespace tilewright::plan::cpu {
namespace {

using ir::BinaryOp;
using ir::OpKind;
using ir::UnaryOp;
using target::kExp2F32;
using target::kExpF32;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// What differs between f32 and f64 in the shared sequences.
struct Format {
  int mantissa_bits;
  int bias;
  double to_integer;  ///< adding it rounds to an integer and leaves that integer in the low bits
  double smallest_normal;
};
constexpr Format kF32Format{23, 127, 0x1.8p23, 0x1p-126};
constexpr Format kF64Format{52, 1023, 0x1.8p52, 0x1p-1022};
const Format& format_of(LaneMath& m) { return m.is_f32() ? kF32Format : kF64Format; }

// 2^r = 1 + r·P(r) on [-1/2, 1/2].
constexpr std::array kExp2F64 = {0.69314718055994530909,     0.24022650695910098227,   0.05550410866482165975,
                                 0.0096181291076068846414,   0.0013333558146396003091, 0.00015403530441741645964,
                                 0.000015252733853280778418, 1.3215442584937202908e-6, 1.0178051728089911537e-7,
                                 7.0725864798520196266e-9,   4.4566754636398607237e-10};
// e^r = 1 + r + r²·Q(r) on [-ln2/2, ln2/2].
constexpr std::array kExpF64 = {0.5000000000000001082,      0.16666666666666674987,   0.041666666666622149171,
                                0.0083333333333216922467,   0.0013888888918195563237, 0.00019841269888155758867,
                                0.000024801519779869940635, 2.7557240576638266165e-6, 2.7620805188443119774e-7,
                                2.5110709563186862433e-8};
// log(1+f) = f - f²/2 + f³·R(f) on [sqrt(1/2) - 1, sqrt(2) - 1].
constexpr std::array kLogF32 = {0.333333119376,  -0.24999986403, 0.200021458657,  -0.166692169614, 0.142200258152,
                                -0.123855460112, 0.118651007241, -0.117807182538, 0.0692112501667};
// log((1+s)/(1-s)) = 2s + s³·T(s²).
constexpr std::array kLogF64 = {0.66666666666666666668, 0.39999999999999992357, 0.28571428571435466291,
                                0.22222222219828280578, 0.18181818597897369837, 0.15384574812270320901,
                                0.13335652029636011318, 0.11687833709316186704, 0.11884549767398810502};
// tanh(x) = x + x³·U(x²) on [0, 0.625].
constexpr std::array kTanhF32 = {-0.333333331836, 0.133333049988,    -0.0539595522395,
                                 0.0217710031836, -0.00835001547337, 0.00229893770934};
constexpr std::array kTanhF64 = {-0.33333333333333333333,    0.1333333333333333283,       -0.05396825396825312181,
                                 0.021869488536099072362,    -0.0088632355279583060219,   0.0035921279961933428013,
                                 -0.0014558338425658882789,  0.00059002244234229511736,   -0.00023909698677981355025,
                                 0.000096768852547821309445, -0.000038803682569994243179, 0.000014839982424807111207,
                                 -4.7771335832559539048e-6,  9.1963225228841097698e-7};
// erf(x) = x·V(x²) on [0, 1]; erf(x) = 1 - exp(-q(x - centre)) above.
constexpr std::array kErfF32 = {1.12837916591,    -0.376126271404,    0.112836002118,  -0.0268544455815,
                                0.00518953646194, -0.000802084569841, 7.88911915749e-5};
constexpr std::array kErfF64 = {1.1283791670955125738,     -0.37612638903183748178,     0.11283791670954884473,
                                -0.026866170645077875148,  0.0052239776248284306696,    -0.00085483269814255420875,
                                0.00012055331132955819588, -0.000014925595772180905342, 1.6461008477801702324e-6,
                                -1.6350396222864616262e-7, 1.4660328722742259544e-8,    -1.1374955736070149599e-9,
                                5.9606853385209710332e-11};
constexpr std::array kErfTailF32 = {7.80681526626,     5.35268065051,     0.943893513081,   0.0108587291702,
                                    -0.00216259276273, 0.000423927704925, -7.8174875046e-5, 8.20163209523e-6,
                                    -5.19754246339e-6, -7.84358879017e-7};
constexpr std::array kErfTailF64 = {
    14.112437402148173571,      7.2660995883651513827,      0.96675305474196505801,      0.0052256582218567354501,
    -0.0008736873201966986844,  0.00014729778492865894555,  -0.000024386368932479916802, 3.8895307962442664883e-6,
    -5.8566809680207262048e-7,  8.0665672340283931993e-8,   -9.4919943041059865298e-9,   8.471607209385677481e-10,
    6.4020763756069070679e-11,  -4.1408447824526812707e-11, -1.896535003512960781e-11,   -1.8572153697912951219e-11,
    -2.1352307661406884413e-12, 2.2746553004551584452e-12,  1.7858136020860370568e-12,   6.0555732533257497768e-13,
    1.1748711743251983321e-13,  1.2251269833647830785e-14,  4.7951112491769715529e-16};
// sin(r) = r + r³·S(r²), cos(r) = 1 - r²/2 + r⁴·C(r²) on [-pi/4, pi/4].
constexpr std::array kSinF32 = {-0.166666666638, 0.00833333186759, -0.000198400827176, 2.72493900681e-6};
constexpr std::array kSinF64 = {-0.16666666666666666665,   0.0083333333333333314711,  -0.00019841269841265019362,
                                2.7557319219303530339e-6,  -2.5052106220024739247e-8, 1.6058529644581050557e-10,
                                -7.5865804879045913955e-13};
constexpr std::array kCosF32 = {0.0416666666643, -0.00138888876659, 2.48005969396e-5, -2.73005029748e-7};
constexpr std::array kCosF64 = {0.041666666666666666666,   -0.0013888888888888887854, 0.000024801587301584620955,
                                -2.7557319221382921878e-7, 2.0876755784145610838e-9,  -1.1470459785853875158e-11,
                                4.7458068408021499652e-14};

Lane square(Lane x) { return x * x; }
Lane absolute(Lane x) { return x.math->unary(UnaryOp::Abs, x); }
Lane shift_left(Lane x, int count) { return x.math->binary(BinaryOp::Shl, x, x.math->bits(count)); }
Lane shift_right(Lane x, int count) { return x.math->binary(BinaryOp::Shr, x, x.math->bits(count)); }

/// x rounded to an integer, as a float and still in the low bits of `carrier`.
struct Rounded {
  Lane carrier;
  Lane value;
};
Rounded round_to_integer(Lane x) {
  LaneMath& m = *x.math;
  const Lane magic = m.real(format_of(m).to_integer);
  const Lane carrier = x + magic;
  return {carrier, carrier - magic};
}

/// p·2^n by adding n to the exponent field, p in [1/2, 2] and the result normal for x in [low, high); 0 below,
/// x + inf (infinite, or NaN for NaN) above. The selects take the forms that become masked instructions.
Lane scale_within(Lane p, Lane carrier, Lane x, double low, double high) {
  LaneMath& m = *p.math;
  const Lane scaled = m.to_bits(p) + shift_left(m.to_bits(carrier), format_of(m).mantissa_bits);
  const Lane flushed = m.from_bits(m.select(x < m.real(low), m.bits(0), scaled));
  const Lane is_above = m.unary(UnaryOp::Not, x < m.real(high));
  return m.select(is_above, x + m.real(kInf), flushed);
}

Lane expand_exp2(Lane x) {
  LaneMath& m = *x.math;
  if (m.keeps_exponentials()) return m.unary(UnaryOp::Exp2, x);
  const Rounded n = round_to_integer(x);
  const Lane r = x - n.value;
  const Lane p = m.fma(r, m.is_f32() ? m.polynomial(r, kExp2F32) : m.polynomial(r, kExp2F64), m.real(1));
  return scale_within(p, n.carrier, x, m.is_f32() ? -126 : -1022, m.is_f32() ? 128 : 1024);
}

Lane expand_exp(Lane x) {
  LaneMath& m = *x.math;
  if (m.keeps_exponentials()) return m.unary(UnaryOp::Exp, x);
  const Lane magic = m.real(format_of(m).to_integer), one = m.real(1);
  const Lane carrier = m.fma(x, m.real(std::numbers::log2e), magic);
  const Lane n = carrier - magic;
  Lane r = m.fma(n, m.pick(-target::kLn2High, -0.693147180559890330187045), x);
  r = m.fma(n, m.pick(-target::kLn2Low, -5.497923018708371174712471e-14), r);
  const Lane q = m.is_f32() ? m.polynomial(r, kExpF32) : m.polynomial(r, kExpF64);
  const Lane p = m.fma(r, m.fma(r, q, one), one);
  return scale_within(p, carrier, x, m.is_f32() ? -87.33654 : -708.39641853226408,
                      m.is_f32() ? 88.72284 : 709.78271289338397);
}

/// x = m·2^e with m in [sqrt(1/2), sqrt(2)), for positive normal and subnormal x.
struct Fraction {
  Lane mantissa;
  Lane exponent;
};
Fraction split_fraction(Lane x) {
  LaneMath& m = *x.math;
  const Format& format = format_of(m);
  const double up = m.is_f32() ? 0x1p24 : 0x1p54;
  const Lane is_small = x < m.real(format.smallest_normal);
  const Lane scaled = m.select(is_small, x * m.real(up), x);
  const Lane raw = m.to_bits(scaled);
  const int64_t root_half = m.is_f32() ? 0x3F3504F3 : 0x3FE6A09E667F3BCD;
  const Lane shifted = raw - m.bits(root_half);
  const Lane exponent = shift_right(shifted, format.mantissa_bits);
  const Lane mantissa = m.from_bits(raw - shift_left(exponent, format.mantissa_bits));
  const Lane correction = m.select(is_small, m.real(m.is_f32() ? -24 : -54), m.real(0));
  return {mantissa, m.cast(exponent, m.dtype()) + correction};
}

/// x < 0 and NaN give NaN, 0 gives -inf, +inf stays.
Lane limit_logarithm(Lane result, Lane x) {
  LaneMath& m = *x.math;
  Lane limited = m.select(x == m.real(kInf), x, result);
  limited = m.select(x == m.real(0), m.real(-kInf), limited);
  return m.select(m.compare(ir::CompareOp::Ge, x, m.real(0)), limited, m.real(kNan));
}

/// log(1+f) as f + tail, tail small.
struct LogParts {
  Lane head;
  Lane tail;
};
LogParts log_of_mantissa(Lane mantissa) {
  LaneMath& m = *mantissa.math;
  const Lane f = mantissa - m.real(1);
  if (m.is_f32()) {
    const Lane f2 = square(f);
    return {f, m.fma(f2 * f, m.polynomial(f, kLogF32), f2 * m.real(-0.5))};
  }
  // s = f / (2 + f); log(1+f) = f - s·(f - s²·T(s²)) keeps the head exact.
  const Lane s = f / (m.real(2) + f);
  const Lane z = square(s);
  return {f, -(s * (f - z * m.polynomial(z, kLogF64)))};
}

Lane expand_log(Lane x) {
  LaneMath& m = *x.math;
  const Fraction fraction = split_fraction(x);
  const LogParts log = log_of_mantissa(fraction.mantissa);
  const Lane low =
      m.fma(fraction.exponent, m.pick(0.000001428606820309417232, 5.497923018708371174712471e-14), log.tail);
  const Lane high = m.pick(0.693145751953125, 0.693147180559890330187045);
  return limit_logarithm(m.fma(fraction.exponent, high, log.head + low), x);
}

Lane expand_log2(Lane x) {
  LaneMath& m = *x.math;
  const Fraction fraction = split_fraction(x);
  const LogParts log = log_of_mantissa(fraction.mantissa);
  // (head + tail)·log2(e), log2(e) split so that head·high is exact enough to be corrected by one fma.
  const Lane high = m.pick(1.44269502162933349609375, 1.442695040888963387004651);
  const Lane low = m.pick(1.925962855864327138988301e-8, 2.035527374093103002953318e-17);
  const Lane product = log.head * high;
  const Lane lost = m.fma(log.head, high, -product);
  const Lane rest = m.fma(log.tail, high, m.fma(log.head, low, lost));
  const Lane sum = fraction.exponent + product;
  const Lane sum_lost = product - (sum - fraction.exponent);
  return limit_logarithm(sum + (sum_lost + rest), x);
}

Lane with_sign_of(Lane magnitude, Lane sign) {
  LaneMath& m = *magnitude.math;
  const Lane mask = m.bits(m.is_f32() ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min());
  return m.from_bits(m.to_bits(magnitude) | (m.to_bits(sign) & mask));
}

Lane expand_tanh(Lane x) {
  LaneMath& m = *x.math;
  const Lane a = absolute(x);
  const Lane z = square(x);
  const Lane small = m.fma(x * z, m.is_f32() ? m.polynomial(z, kTanhF32) : m.polynomial(z, kTanhF64), x);
  const Lane large = m.real(1) - m.real(2) / (expand_exp(a + a) + m.real(1));
  // NaN: `a < 0.625` is false, and the exponential keeps it.
  return m.select(a < m.real(0.625), small, with_sign_of(large, x));
}

Lane expand_sigmoid(Lane x) {
  LaneMath& m = *x.math;
  return m.real(1) / (m.real(1) + expand_exp(-x));
}

Lane expand_erf(Lane x) {
  LaneMath& m = *x.math;
  const Lane a = absolute(x);
  const Lane z = square(x);
  const Lane small = x * (m.is_f32() ? m.polynomial(z, kErfF32) : m.polynomial(z, kErfF64));
  const Lane end = m.pick(4, 6);
  const Lane inside = m.select(end < a, end, a);
  const Lane t = inside - m.pick(2.5, 3.5);
  const Lane q = m.is_f32() ? m.polynomial(t, kErfTailF32) : m.polynomial(t, kErfTailF64);
  const Lane large = m.real(1) - expand_exp(-q);
  return m.select(a < m.real(1), small, with_sign_of(large, x));
}

Lane expand_rsqrt(Lane x) {
  LaneMath& m = *x.math;
  return m.real(1) / m.unary(UnaryOp::Sqrt, x);
}

/// quarter = 0 for sin, 1 for cos: sin(x + quarter·pi/2).
Lane expand_sine(Lane x, int quarter) {
  LaneMath& m = *x.math;
  const Rounded n = round_to_integer(x * m.real(std::numbers::inv_pi * 2));
  Lane r = m.fma(n.value, m.pick(-1.5707962512969970703125, -1.570796326794896557998982), x);
  r = m.fma(n.value, m.pick(-7.54978941586159635335207e-8, -6.123233995736764803273656e-17), r);
  r = m.fma(n.value, m.pick(-5.390302529957764765544681e-15, -1.082856673921913894238698e-32), r);
  const Lane z = square(r);
  const Lane sine = m.fma(r * z, m.is_f32() ? m.polynomial(z, kSinF32) : m.polynomial(z, kSinF64), r);
  const Lane half = m.fma(z, m.real(-0.5), m.real(1));
  const Lane cosine = m.fma(square(z), m.is_f32() ? m.polynomial(z, kCosF32) : m.polynomial(z, kCosF64), half);
  const Lane turn = m.to_bits(n.carrier) + m.bits(quarter);
  const Lane is_odd = m.compare(ir::CompareOp::Ne, turn & m.bits(1), m.bits(0));
  const Lane chosen = m.select(is_odd, cosine, sine);
  const Lane negative = m.compare(ir::CompareOp::Ne, turn & m.bits(2), m.bits(0));
  const Lane signed_result = m.select(negative, -chosen, chosen);
  // Beyond the promised range the reduction is meaningless: stay in [-1, 1]; infinities and NaN give NaN.
  const Lane in_range = absolute(x) < m.real(0x1p20);
  const Lane outside = x - x;
  return m.select(in_range, signed_result, outside);
}

/// |x|^y for x > 0 in f64 with the logarithm in two doubles, so that y·log2(x) is right to far below one ulp of 2^(…).
Lane pow_of_positive(Lane x, Lane y) {
  LaneMath& m = *x.math;
  const Fraction fraction = split_fraction(x);
  const Lane f = fraction.mantissa - m.real(1);
  // s = f / (2 + f) in two doubles.
  const Lane d = m.real(2) + f;
  const Lane d_low = f - (d - m.real(2));
  const Lane s = f / d;
  const Lane s_low = m.fma(-s, d, f) / d - s * d_low / d;
  const Lane z = square(s);
  const Lane cubic = s * z * m.polynomial(z, kLogF64);
  // log = 2s + (2·s_low + cubic); log2 = log·log2(e), every product with its error.
  const Lane head = s + s;
  const Lane tail = m.fma(m.real(2), s_low, cubic);
  const Lane log_head = head + tail;
  const Lane log_tail = tail - (log_head - head);
  const Lane high = m.real(1.442695040888963387004651);
  const Lane low = m.real(2.035527374093103002953318e-17);
  const Lane product = log_head * high;
  const Lane product_tail = m.fma(log_head, high, -product) + m.fma(log_tail, high, log_head * low);
  const Lane sum = fraction.exponent + product;
  const Lane sum_tail = (product - (sum - fraction.exponent)) + product_tail;
  // y·(sum + sum_tail) = n + r.
  const Lane exponent = y * sum;
  const Lane exponent_tail = m.fma(y, sum, -exponent) + y * sum_tail;
  const Rounded n = round_to_integer(exponent);
  const Lane r = (exponent - n.value) + exponent_tail;
  const Lane p = m.fma(r, m.polynomial(r, kExp2F64), m.real(1));
  return scale_within(p, n.carrier, exponent, -1022, 1024);
}

Lane expand_pow_f64(Lane x, Lane y) {
  LaneMath& m = *x.math;
  const Lane one = m.real(1), zero = m.real(0), infinite = m.real(kInf);
  const Lane a = absolute(x);
  const Lane a_y = absolute(y);
  Lane result = pow_of_positive(a, y);
  // The ends of the range, where the logarithm is not finite.
  const Lane grows = m.compare(ir::CompareOp::Eq, a < one, y < zero);
  result = m.select(a_y == infinite, m.select(grows, infinite, zero), result);
  result = m.select(a == zero, m.select(y < zero, infinite, zero), result);
  result = m.select(a == infinite, m.select(y < zero, zero, infinite), result);
  const Lane whole = m.unary(UnaryOp::Floor, y) == y;
  const Lane half = y * m.real(0.5);
  const Lane even = m.unary(UnaryOp::Floor, half) == half;
  const Lane is_negative = m.compare(ir::CompareOp::Lt, m.to_bits(x), m.bits(0));
  const Lane odd = m.select(even, m.real(0), m.select(whole, one, zero));
  result = m.select(is_negative, m.select(odd == one, -result, result), result);
  // A negative base needs a whole exponent.
  const Lane has_root = m.select(x < zero, m.select(whole, zero, one), zero);
  const Lane undefined = m.select(a == infinite, zero, has_root);
  result = m.select(undefined == one, m.real(kNan), result);
  result = m.select(m.compare(ir::CompareOp::Eq, x, x), m.select(m.compare(ir::CompareOp::Eq, y, y), result, y), x);
  result = m.select(m.compare(ir::CompareOp::Eq, a, one), m.select(a_y == infinite, one, result), result);
  result = m.select(x == one, one, result);
  return m.select(y == zero, one, result);
}

Lane expand_unary(UnaryOp op, Lane x) {
  switch (op) {
    case UnaryOp::Exp: return expand_exp(x);
    case UnaryOp::Exp2: return expand_exp2(x);
    case UnaryOp::Log: return expand_log(x);
    case UnaryOp::Log2: return expand_log2(x);
    case UnaryOp::Tanh: return expand_tanh(x);
    case UnaryOp::Erf: return expand_erf(x);
    case UnaryOp::Sigmoid: return expand_sigmoid(x);
    case UnaryOp::Rsqrt: return expand_rsqrt(x);
    case UnaryOp::Sin: return expand_sine(x, 0);
    case UnaryOp::Cos: return expand_sine(x, 1);
    case UnaryOp::Neg:
    case UnaryOp::Abs:
    case UnaryOp::Not:
    case UnaryOp::Sqrt:
    case UnaryOp::Floor:
    case UnaryOp::Ceil:
    case UnaryOp::Round:
    case UnaryOp::IsNan:
    case UnaryOp::Bitcast: return x;
  }
  return x;
}

bool needs_expansion(const ir::Op& op) {
  if (op.kind == OpKind::Binary) return op.as<ir::BinaryAttributes>().op == BinaryOp::Pow;
  if (op.kind != OpKind::Unary) return false;
  switch (op.as<ir::UnaryAttributes>().op) {
    case UnaryOp::Exp:
    case UnaryOp::Exp2:
    case UnaryOp::Log:
    case UnaryOp::Log2:
    case UnaryOp::Tanh:
    case UnaryOp::Erf:
    case UnaryOp::Sigmoid:
    case UnaryOp::Rsqrt:
    case UnaryOp::Sin:
    case UnaryOp::Cos: return true;
    case UnaryOp::Neg:
    case UnaryOp::Abs:
    case UnaryOp::Not:
    case UnaryOp::Sqrt:
    case UnaryOp::Floor:
    case UnaryOp::Ceil:
    case UnaryOp::Round:
    case UnaryOp::IsNan:
    case UnaryOp::Bitcast: return false;
  }
  return false;
}

/// codegen/llvm/exponential.h
bool has_exponentials(const target::Cpu& cpu, const ir::Type& type) {
  constexpr int kWidest = 512;
  return cpu.has_mask_registers && type.dtype == DType::F32 && type.lanes * bits(type.dtype) == kWidest;
}

/// Emits the expansion of `op`; the value that replaces its result.
ir::Value* expand(ir::Builder& builder, const ir::Op& op, const target::Cpu& cpu, const Plant& plant) {
  const ir::Type& type = op.result()->type;
  LaneMath math(builder, type.dtype, type.lanes, has_exponentials(cpu, type));
  if (op.kind == OpKind::Unary) {
    UnaryOp function = op.as<ir::UnaryAttributes>().op;
    if (function == UnaryOp::Exp && plant.is("expand_math", 1)) function = UnaryOp::Exp2;  // planted: the wrong base
    return expand_unary(function, math.wrap(op.operands[0])).value;
  }
  LaneMath wide(builder, DType::F64, type.lanes);
  const Lane x = wide.wrap(builder.cast(op.operands[0], DType::F64));
  const Lane y = wide.wrap(builder.cast(op.operands[1], DType::F64));
  return builder.cast(expand_pow_f64(x, y).value, type.dtype);
}

void expand_region(ir::Kernel& kernel, ir::Region& region, const target::Cpu& cpu, const Plant& plant) {
  std::vector<ir::Op*> before;
  before.swap(region.ops);
  ir::Builder builder(kernel);
  builder.set_region(&region);
  for (ir::Op* op : before) {
    for (ir::Region* inner : op->regions) expand_region(kernel, *inner, cpu, plant);
    if (!needs_expansion(*op)) {
      region.ops.push_back(op);
      continue;
    }
    builder.set_location(op->location);
    // The last operation takes over the old result, so that no use has to change.
    ir::Op* last = expand(builder, *op, cpu, plant)->def;
    last->results[0] = op->results[0];
    last->results[0]->def = last;
  }
}

}  // namespace

Lane LaneMath::polynomial(Lane x, std::span<const double> coefficients) {
  Lane sum = real(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = fma(sum, x, real(coefficients[i]));
  return sum;
}

void expand_math(ir::Kernel& kernel, const target::Cpu& cpu, const Plant& plant) {
  expand_region(kernel, *kernel.body, cpu, plant);
}

}  // namespace tilewright::plan::cpu
