#include "interp/thread_alu.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/narrow_float.h"

namespace tilewright::interp {
namespace {

using namespace ir::thread;

// The hardware's NaN results carry no payload of their operands.
constexpr uint64_t kNan32 = 0x7fffffff, kNan16 = 0x7fff, kNan8 = 0x7f;

float f(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
uint64_t u(float x) { return std::bit_cast<uint32_t>(x); }
double d(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t u(double x) { return std::bit_cast<uint64_t>(x); }

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

/// What a register of a type keeps, looked up once for every lane of every instruction.
struct Kept {
  uint64_t mask;
  int shift;  ///< of signed types: left and right again extends the sign
};
const auto kKept = [] {
  std::array<Kept, static_cast<size_t>(Scalar::E5M2x2) + 1> out{};
  for (size_t i = 0; i < out.size(); ++i) {
    const auto type = static_cast<Scalar>(i);
    const int n = bytes(type);
    const bool is_whole = n == 0 || n == 8;
    out[i] = {is_whole ? ~uint64_t{0} : (uint64_t{1} << (8 * n)) - 1, is_whole || !is_signed(type) ? 0 : 64 - 8 * n};
  }
  return out;
}();

uint64_t truncated(Scalar type, uint64_t v) { return v & kKept[static_cast<size_t>(type)].mask; }
int64_t extended(Scalar type, uint64_t v) {
  const Kept& k = kKept[static_cast<size_t>(type)];
  return static_cast<int64_t>((v & k.mask) << k.shift) >> k.shift;
}

template <typename T>
T nan_min(T a, T b) {
  return std::isnan(a) || std::isnan(b)           ? std::numeric_limits<T>::quiet_NaN()
         : (a < b || (a == b && std::signbit(a))) ? a
                                                  : b;
}
template <typename T>
T nan_max(T a, T b) {
  return std::isnan(a) || std::isnan(b)            ? std::numeric_limits<T>::quiet_NaN()
         : (a > b || (a == b && !std::signbit(a))) ? a
                                                   : b;
}

template <typename T>
T float_op(Op op, int attr, T a, T b, T c) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Fma:
    case Op::Mad: return std::fma(a, b, c);
    case Op::Div: return a / b;
    case Op::Min: return nan_min(a, b);
    case Op::Max: return nan_max(a, b);
    case Op::MinNumber: return std::fmin(a, b);
    case Op::MaxNumber: return std::fmax(a, b);
    case Op::Neg: return -a;
    case Op::Abs: return std::fabs(a);
    case Op::Exp2: return std::exp2(a);
    case Op::Log2: return std::log2(a);
    case Op::Rcp: return T(1) / a;
    case Op::Rsqrt: return T(1) / std::sqrt(a);
    case Op::Sqrt: return std::sqrt(a);
    case Op::Sin: return std::sin(a);
    case Op::Cos: return std::cos(a);
    case Op::Round:
      return attr == 0 ? std::nearbyint(a) : attr == 1 ? std::floor(a) : attr == 2 ? std::ceil(a) : std::trunc(a);
    default: return a;
  }
}

bool compare_numbers(Compare how, auto a, auto b) {
  switch (how) {
    case Compare::Eq: return a == b;
    case Compare::Ne: return a != b;
    case Compare::Lt: return a < b;
    case Compare::Le: return a <= b;
    case Compare::Gt: return a > b;
    case Compare::Ge: return a >= b;
  }
  return false;
}

uint64_t integer_op(Op op, Scalar type, uint64_t a, uint64_t b, uint64_t c) {
  const int64_t sa = extended(type, a), sb = extended(type, b);
  const auto ua = truncated(type, a), ub = truncated(type, b);
  const bool sign = is_signed(type);
  const int width = type == Scalar::Pred ? 1 : 8 * bytes(type);
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::MulWide: return sign ? static_cast<uint64_t>(sa * sb) : ua * ub;
    case Op::MulHi:
      return sign ? static_cast<uint64_t>((Wide{sa} * sb) >> width)
                  : static_cast<uint64_t>((UnsignedWide{ua} * ub) >> width);
    case Op::Mad: return a * b + c;
    case Op::Div: return ub == 0 ? ~uint64_t{0} : sign ? static_cast<uint64_t>(sb == -1 ? -sa : sa / sb) : ua / ub;
    case Op::Rem: return ub == 0 ? a : sign ? static_cast<uint64_t>(sb == -1 ? 0 : sa % sb) : ua % ub;
    case Op::Min:
    case Op::MinNumber: return sign ? (sa < sb ? a : b) : (ua < ub ? a : b);
    case Op::Max:
    case Op::MaxNumber: return sign ? (sa > sb ? a : b) : (ua > ub ? a : b);
    case Op::Neg: return ~a + 1;
    case Op::Abs: return static_cast<uint64_t>(sa < 0 ? -sa : sa);
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Not: return type == Scalar::Pred ? !a : ~a;
    case Op::Shl: return (b & 0xffffffff) >= static_cast<uint64_t>(width) ? 0 : a << (b & 63);
    case Op::Shr: {
      const uint64_t count = b & 0xffffffff;
      if (count >= static_cast<uint64_t>(width)) return sign && sa < 0 ? ~uint64_t{0} : 0;
      return sign ? static_cast<uint64_t>(sa >> count) : ua >> count;
    }
    default: return a;
  }
}

template <typename I>
uint64_t saturate(double x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(std::numeric_limits<I>::min()))
    return static_cast<uint64_t>(std::numeric_limits<I>::min());
  if (x >= static_cast<double>(std::numeric_limits<I>::max()))
    return static_cast<uint64_t>(std::numeric_limits<I>::max());
  return static_cast<uint64_t>(static_cast<I>(x));
}

uint64_t from_double(Scalar to, double x) {
  switch (to) {
    case Scalar::F64: return u(x);
    case Scalar::F32: return std::isnan(x) ? kNan32 : u(static_cast<float>(x));
    case Scalar::F16: return std::isnan(x) ? kNan16 : f16_from(x);
    case Scalar::BF16: return std::isnan(x) ? kNan16 : bf16_from(x);
    case Scalar::TF32: {  // nearest, ties away
      const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
      return std::isfinite(x) ? (bits + 0x1000u) & ~0x1fffu : bits;
    }
    case Scalar::U8: return saturate<uint8_t>(x);
    case Scalar::U16: return saturate<uint16_t>(x);
    case Scalar::U32: return saturate<uint32_t>(x);
    case Scalar::U64: return std::isnan(x) ? uint64_t{1} << 63 : saturate<uint64_t>(x);
    case Scalar::S8: return saturate<int8_t>(x);
    case Scalar::S16: return saturate<int16_t>(x);
    case Scalar::S32: return saturate<int32_t>(x);
    case Scalar::S64: return std::isnan(x) ? uint64_t{1} << 63 : saturate<int64_t>(x);
    default: return 0;
  }
}

uint64_t convert(Scalar to, Scalar from, uint64_t a) {
  if (from == Scalar::Pred) return a & 1;
  if (from == Scalar::F64 && std::isnan(d(a)) && (to == Scalar::U32 || to == Scalar::S32)) return uint64_t{1} << 31;
  if (is_float(from)) return from_double(to, thread_number(from, a));
  if (!is_float(to)) return static_cast<uint64_t>(extended(from, a));
  if (from == Scalar::U64)
    return to == Scalar::F32 ? u(static_cast<float>(a)) : from_double(to, static_cast<double>(a));
  const int64_t v = extended(from, a);
  return to == Scalar::F32 ? u(static_cast<float>(v)) : from_double(to, static_cast<double>(v));
}

uint64_t pack_one(Scalar pair, float x) {
  const bool is_wide = bytes(pair) == 4;
  if (std::isnan(x)) return is_wide ? kNan16 : kNan8;
  switch (pair) {
    case Scalar::F16x2: return f16_from(x);
    case Scalar::BF16x2: return bf16_from(x);
    case Scalar::E4M3x2: return e4m3_from(x);
    default: return e5m2_from(x);
  }
}
uint64_t pack(Scalar pair, float low, float high) {
  return pack_one(pair, low) | pack_one(pair, high) << (bytes(pair) * 4);
}

}  // namespace

double thread_number(Scalar type, uint64_t bits) {
  switch (type) {
    case Scalar::F16: return f16_to_float(static_cast<uint16_t>(bits));
    case Scalar::BF16: return bf16_to_float(static_cast<uint16_t>(bits));
    case Scalar::F32: return f(bits);
    case Scalar::TF32: return f(bits & 0xffffe000u);
    case Scalar::F64: return d(bits);
    case Scalar::E4M3: return e4m3_to_float(static_cast<uint8_t>(bits));
    case Scalar::E5M2: return e5m2_to_float(static_cast<uint8_t>(bits));
    default: return static_cast<double>(extended(type, bits));
  }
}

uint64_t thread_alu(const Inst& inst, uint64_t a, uint64_t b, uint64_t c) {
  const Scalar type = inst.type;
  switch (inst.op) {
    case Op::Mov: return truncated(type, a);
    case Op::Select: return a & 1 ? b : c;
    case Op::Convert: return truncated(type, convert(type, inst.from, a));
    case Op::PackPair: return pack(type, f(a), f(b));
    case Op::UnpackPair: {
      const Scalar half = type == Scalar::E4M3x2 ? Scalar::E4M3 : Scalar::E5M2;
      return from_double(Scalar::F16, thread_number(half, a & 0xff)) |
             from_double(Scalar::F16, thread_number(half, (a >> 8) & 0xff)) << 16;
    }
    case Op::Join: return bytes(type) == 8 ? (a & 0xffffffff) | b << 32 : (a & 0xffff) | (b & 0xffff) << 16;
    case Op::SetP:
      if (is_float(type)) return compare_numbers(inst.compare, thread_number(type, a), thread_number(type, b));
      if (is_signed(type)) return compare_numbers(inst.compare, extended(type, a), extended(type, b));
      return compare_numbers(inst.compare, truncated(type, a), truncated(type, b));
    default: break;
  }
  if (type == Scalar::F64) return u(float_op<double>(inst.op, inst.attr[0], d(a), d(b), d(c)));
  if (type == Scalar::F32) {
    const float result = float_op<float>(inst.op, inst.attr[0], f(a), f(b), f(c));
    return std::isnan(result) && inst.op != Op::Neg && inst.op != Op::Abs ? kNan32 : u(result);
  }
  if (type == Scalar::F16 || type == Scalar::BF16) {
    return from_double(type, float_op<double>(inst.op, inst.attr[0], thread_number(type, a), thread_number(type, b),
                                              thread_number(type, c)));
  }
  const uint64_t out = integer_op(inst.op, type, a, b, c);
  if (type == Scalar::Pred) return out & 1;
  return inst.op == Op::MulWide ? out : truncated(type, out);
}

uint64_t thread_atomic(AtomicKind kind, Scalar type, uint64_t old, uint64_t operand) {
  Inst inst;
  inst.type = type;
  switch (kind) {
    case AtomicKind::Add: inst.op = Op::Add; break;
    case AtomicKind::Min: inst.op = Op::Min; break;
    case AtomicKind::Max: inst.op = Op::Max; break;
    case AtomicKind::Or: inst.op = Op::Or; break;
    case AtomicKind::And: inst.op = Op::And; break;
    case AtomicKind::Xor: inst.op = Op::Xor; break;
    case AtomicKind::Exchange: return operand;
  }
  return thread_alu(inst, old, operand, 0);
}

}  // namespace tilewright::interp
