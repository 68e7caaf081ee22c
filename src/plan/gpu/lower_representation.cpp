// Between an element in memory and the register that computes with it.
#include <bit>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

Operand Lowering::from_memory(DType dtype, Reg raw) {
  switch (dtype) {
    case DType::Bool: return b_.compare(Compare::Ne, Scalar::S32, b_.convert(Scalar::S32, Scalar::U8, raw), 0);
    case DType::I8: return b_.convert(Scalar::S32, Scalar::S8, raw);
    case DType::I16: return b_.convert(Scalar::S32, Scalar::S16, raw);
    case DType::U8: return b_.convert(Scalar::U32, Scalar::U8, raw);
    case DType::U16: return b_.convert(Scalar::U32, Scalar::U16, raw);
    case DType::F16: return b_.convert(Scalar::F32, Scalar::F16, raw);
    case DType::BF16: return b_.convert(Scalar::F32, Scalar::BF16, raw);
    case DType::E5M2: {  // the upper half of an f16
      const Operand wide = b_.convert(Scalar::U32, Scalar::U8, raw);
      const auto halves = b_.split(Scalar::B32, b_.shl(Scalar::U32, wide, 8));
      return b_.convert(Scalar::F32, Scalar::F16, halves.first);
    }
    case DType::E4M3: {  // magnitude shifted under an f32 exponent 120 too small; exact, subnormals included
      const Operand wide = b_.convert(Scalar::U32, Scalar::U8, raw);
      const Operand magnitude = b_.bit_and(Scalar::U32, wide, 0x7f);
      const Operand scaled = b_.mul(Scalar::F32, b_.shl(Scalar::U32, magnitude, 20), Operand::f32(0x1p120f));
      const Operand sign = b_.shl(Scalar::U32, b_.shr(Scalar::U32, wide, 7), 31);
      const Operand number = b_.bit_or(Scalar::B32, scaled, sign);
      return b_.select(Scalar::B32, b_.compare(Compare::Eq, Scalar::U32, magnitude, 0x7f), int64_t{0x7fc00000}, number);
    }
    default: return raw;
  }
}

/// f32 to a float of 8 bits without its instruction.
Operand Lowering::narrowed_float(DType dtype, Operand x) {
  // Nearest even by adding a power of two whose last place is the format's, or by integer rounding of the f32 bits.
  const int mantissa = dtype == DType::E4M3 ? 3 : 2, bias = dtype == DType::E4M3 ? 7 : 15;
  const float largest = dtype == DType::E4M3 ? 448.0f : 57344.0f;
  const int drop = 23 - mantissa;
  const Operand bits = b_.bit_and(Scalar::U32, x, 0x7fffffff);
  const Operand clamped = b_.binary(ir::thread::Op::MinNumber, Scalar::F32, bits, Operand::f32(largest));
  const Operand odd = b_.bit_and(Scalar::U32, b_.shr(Scalar::U32, clamped, drop), 1);
  const Operand up = b_.add(Scalar::U32, b_.add(Scalar::U32, clamped, (1 << (drop - 1)) - 1), odd);
  const Operand normal = b_.sub(Scalar::U32, b_.shr(Scalar::U32, up, drop), (127 - bias) << mantissa);
  const float unit = std::bit_cast<float>(static_cast<uint32_t>(127 + 23 + 1 - bias - mantissa) << 23);
  const Operand sum = b_.add(Scalar::F32, clamped, Operand::f32(unit));
  const Operand small = b_.sub(Scalar::U32, sum, static_cast<int64_t>(std::bit_cast<uint32_t>(unit)));
  const float least = std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - bias) << 23);
  Operand code =
      b_.select(Scalar::B32, b_.compare(Compare::Lt, Scalar::F32, clamped, Operand::f32(least)), small, normal);
  code = b_.select(Scalar::B32, b_.compare(Compare::Gt, Scalar::U32, bits, 0x7f800000), 0x7f, code);
  const Operand sign = b_.bit_and(Scalar::U32, b_.shr(Scalar::U32, x, 24), 0x80);
  return b_.split(Scalar::B32, b_.bit_or(Scalar::B32, code, sign)).first;
}

Operand Lowering::to_memory(DType dtype, Operand x) {
  switch (dtype) {
    case DType::Bool: return b_.convert(Scalar::B16, Scalar::B32, b_.select(Scalar::B32, x, 1, 0));
    case DType::I8:
    case DType::I16:
    case DType::U8:
    case DType::U16: return b_.split(Scalar::B32, x).first;
    case DType::F16: return b_.convert(Scalar::F16, Scalar::F32, x);
    case DType::BF16: return b_.convert(Scalar::BF16, Scalar::F32, x);
    case DType::E4M3:
    case DType::E5M2: {
      if (gpu_.architecture >= 89)
        return b_.pack_pair(dtype == DType::E4M3 ? Scalar::E4M3x2 : Scalar::E5M2x2, x, Operand::f32(0));
      return narrowed_float(dtype, x);
    }
    default: return b_.in_register(x, memory_type(dtype));
  }
}

}  // namespace tilewright::plan::gpu
