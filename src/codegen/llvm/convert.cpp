#include "codegen/llvm/convert.h"

#include <llvm/IR/Intrinsics.h>

#include "base/narrow_float.h"

namespace tilewright::codegen {
namespace {

using Builder = llvm::IRBuilder<>;

int lanes_of(llvm::Value* x) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Type* with_lanes(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Type* integer_like(llvm::Value* x, unsigned width) {
  return with_lanes(llvm::Type::getIntNTy(x->getContext(), width), lanes_of(x));
}

llvm::Value* constant_like(llvm::Value* x, uint64_t v) { return llvm::ConstantInt::get(x->getType(), v); }

/// bf16 bits are the upper half of f32.
llvm::Value* widen_bf16(Builder& b, llvm::Value* bits) {
  llvm::Value* wide = b.CreateZExt(bits, integer_like(bits, 32));
  return b.CreateBitCast(b.CreateShl(wide, constant_like(wide, 16)), with_lanes(b.getFloatTy(), lanes_of(bits)));
}

/// Adds half an ulp (less one when even) and truncates; NaN keeps its sign and becomes quiet.
llvm::Value* round_to_bf16(Builder& b, llvm::Value* x) {
  llvm::Value* bits = b.CreateBitCast(x, integer_like(x, 32));
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(bits, constant_like(bits, 16)), constant_like(bits, 1));
  llvm::Value* rounded = b.CreateAdd(b.CreateAdd(bits, odd), constant_like(bits, 0x7FFF));
  llvm::Value* quiet = b.CreateOr(bits, constant_like(bits, 0x400000));
  llvm::Value* chosen = b.CreateSelect(b.CreateFCmpUNO(x, x), quiet, rounded);
  return b.CreateTrunc(b.CreateLShr(chosen, constant_like(bits, 16)), integer_like(x, 16));
}

/// f64 to f32 rounded to odd: the second rounding, to a format with at least two fewer digits, is then as if it were
/// the only one (Boldo and Melquiond, "When double rounding is odd", 2005).
llvm::Value* round_to_odd_f32(Builder& b, llvm::Value* x) {
  llvm::Type* f32 = with_lanes(b.getFloatTy(), lanes_of(x));
  llvm::Value* nearest = b.CreateFPTrunc(x, f32);
  llvm::Value* back = b.CreateFPExt(nearest, x->getType());
  llvm::Value* bits = b.CreateBitCast(nearest, integer_like(x, 32));
  llvm::Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* too_large = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back), magnitude);
  llvm::Value* truncated = b.CreateSelect(too_large, b.CreateSub(bits, constant_like(bits, 1)), bits);
  llvm::Value* odd = b.CreateOr(truncated, constant_like(bits, 1));
  llvm::Value* exact = b.CreateOr(b.CreateFCmpOEQ(back, x), b.CreateFCmpUNO(x, x));
  return b.CreateBitCast(b.CreateSelect(exact, bits, odd), f32);
}

const NarrowFormat& format_of(DType dtype) { return dtype == DType::E4M3 ? kE4m3 : kE5m2; }

/// fp8 to f32: through the exponent field for normal codes, by an exact product for subnormal ones.
llvm::Value* widen_fp8(Builder& b, llvm::Value* code, DType dtype) {
  const NarrowFormat& format = format_of(dtype);
  const int lanes = lanes_of(code);
  llvm::Value* bits = b.CreateZExt(code, integer_like(code, 32));
  llvm::Value* magnitude = b.CreateAnd(bits, constant_like(bits, format.magnitude_mask()));
  llvm::Value* sign = b.CreateShl(b.CreateLShr(bits, constant_like(bits, 7)), constant_like(bits, 31));
  const int shift = 23 - format.mantissa_bits;
  llvm::Value* moved = b.CreateBitCast(b.CreateShl(magnitude, constant_like(bits, static_cast<uint64_t>(shift))),
                                       with_lanes(b.getFloatTy(), lanes));
  // The field holds exponent e with the narrow bias; multiplying by 2^(127 - bias) is exact and covers subnormals.
  const float scale = std::bit_cast<float>(static_cast<uint32_t>(127 + 127 - format.bias()) << 23);
  llvm::Value* scaled = b.CreateFMul(moved, llvm::ConstantFP::get(moved->getType(), scale));
  llvm::Value* scaled_bits = b.CreateBitCast(scaled, bits->getType());
  const uint32_t first_special = format.infinity ? format.infinity : format.magnitude_mask();
  llvm::Value* is_nan =
      b.CreateICmpUGT(magnitude, constant_like(bits, format.infinity ? format.infinity : first_special - 1));
  llvm::Value* is_infinity = b.CreateICmpEQ(magnitude, constant_like(bits, format.infinity ? format.infinity : 0xFFFF));
  scaled_bits = b.CreateSelect(is_infinity, constant_like(bits, 0x7F800000), scaled_bits);
  scaled_bits = b.CreateSelect(is_nan, constant_like(bits, 0x7FC00000), scaled_bits);
  return b.CreateBitCast(b.CreateOr(scaled_bits, sign), moved->getType());
}

/// f32 to fp8: scale into the narrow exponent range, round to nearest even on the dropped bits, saturate (see
/// narrow_float.h).
llvm::Value* round_to_fp8(Builder& b, llvm::Value* x, DType dtype) {
  const NarrowFormat& format = format_of(dtype);
  llvm::Type* word = integer_like(x, 32);
  const auto c = [&](uint64_t v) { return llvm::ConstantInt::get(word, v); };
  llvm::Value* bits = b.CreateBitCast(x, word);
  llvm::Value* sign = b.CreateShl(b.CreateLShr(bits, c(31)), c(7));
  llvm::Value* magnitude = b.CreateAnd(bits, c(0x7FFFFFFF));
  const int drop = 23 - format.mantissa_bits;
  // Normal results: rebias the exponent field, then round the dropped bits to nearest even.
  llvm::Value* rebased = b.CreateSub(magnitude, c(static_cast<uint64_t>(127 - format.bias()) << 23));
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(rebased, c(static_cast<uint64_t>(drop))), c(1));
  llvm::Value* normal =
      b.CreateLShr(b.CreateAdd(b.CreateAdd(rebased, c((1u << (drop - 1)) - 1)), odd), c(static_cast<uint64_t>(drop)));
  // Subnormal results: adding 2^(23 - digits) aligns the last place, so the hardware's own rounding is the one
  // rounding.
  const int last_place = 1 - format.bias() - format.mantissa_bits;
  const uint32_t magic_bits = static_cast<uint32_t>(127 + last_place + 23) << 23;
  llvm::Value* magic = llvm::ConstantFP::get(x->getType(), std::bit_cast<float>(magic_bits));
  llvm::Value* absolute = b.CreateBitCast(magnitude, x->getType());
  llvm::Value* subnormal = b.CreateSub(b.CreateBitCast(b.CreateFAdd(absolute, magic), word), c(magic_bits));
  llvm::Value* is_normal = b.CreateICmpUGE(magnitude, c(static_cast<uint64_t>(127 - format.bias() + 1) << 23));
  llvm::Value* code = b.CreateSelect(is_normal, normal, subnormal);
  llvm::Value* limit = c(format.max_finite);
  code = b.CreateSelect(b.CreateAnd(is_normal, b.CreateICmpSGT(code, limit)), limit, code);
  code = b.CreateSelect(b.CreateICmpUGT(magnitude, c(0x7F800000)),
                        c(encode_narrow(std::bit_cast<float>(0x7FC00000u), format, Overflow::Saturate)), code);
  return b.CreateTrunc(b.CreateOr(code, sign), integer_like(x, 8));
}

llvm::Value* widen_to_f32(Builder& b, llvm::Value* x, DType from) {
  if (from == DType::F16) return b.CreateFPExt(x, with_lanes(b.getFloatTy(), lanes_of(x)));
  if (from == DType::BF16) return widen_bf16(b, x);
  return widen_fp8(b, x, from);
}

llvm::Value* round_from_f32(Builder& b, llvm::Value* x, DType to) {
  if (to == DType::F16) return b.CreateFPTrunc(x, with_lanes(b.getHalfTy(), lanes_of(x)));
  if (to == DType::BF16) return round_to_bf16(b, x);
  return round_to_fp8(b, x, to);
}

llvm::Value* float_to_int(Builder& b, llvm::Value* x, DType to) {
  llvm::Type* type = register_type(b.getContext(), to, lanes_of(x));
  const auto id = is_signed_int(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return b.CreateIntrinsic(id, {type, x->getType()}, {x});
}

/// A 64-bit integer that f64 holds: beyond 2^53 rounded to odd, the last bit kept standing for those that are not.
llvm::Value* odd_within_f64(Builder& b, llvm::Value* x, DType from) {
  const auto c = [&](uint64_t v) { return constant_like(x, v); };
  constexpr uint64_t kLimit = uint64_t{1} << 53, kLost = 0xfff;
  llvm::Value* is_large =
      is_signed_int(from) ? b.CreateICmpUGE(b.CreateAdd(x, c(kLimit)), c(2 * kLimit)) : b.CreateICmpUGE(x, c(kLimit));
  llvm::Value* kept = b.CreateAnd(x, c(~kLost));
  llvm::Value* has_rest = b.CreateICmpNE(b.CreateAnd(x, c(kLost)), c(0));
  llvm::Value* sticky = b.CreateSelect(has_rest, b.CreateOr(kept, c((kLost + 1) / 2)), kept);
  return b.CreateSelect(is_large, sticky, x);
}

llvm::Value* int_to_float(Builder& b, llvm::Value* x, DType from, DType to) {
  llvm::Type* type = register_type(b.getContext(), to, lanes_of(x));
  return is_signed_int(from) ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
}

}  // namespace

llvm::Type* register_type(llvm::LLVMContext& context, DType dtype, int lanes) {
  switch (dtype) {
    case DType::Bool: return with_lanes(llvm::Type::getInt1Ty(context), lanes);
    case DType::F16: return with_lanes(llvm::Type::getHalfTy(context), lanes);
    case DType::F32: return with_lanes(llvm::Type::getFloatTy(context), lanes);
    case DType::F64: return with_lanes(llvm::Type::getDoubleTy(context), lanes);
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64:
    case DType::U8:
    case DType::U16:
    case DType::U32:
    case DType::U64:
    case DType::BF16:
    case DType::E4M3:
    case DType::E5M2: return with_lanes(llvm::Type::getIntNTy(context, static_cast<unsigned>(bits(dtype))), lanes);
  }
  return nullptr;
}

llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype, int lanes) {
  return dtype == DType::Bool ? with_lanes(llvm::Type::getInt8Ty(context), lanes)
                              : register_type(context, dtype, lanes);
}

llvm::Value* from_memory(Builder& b, llvm::Value* x, DType dtype) {
  return dtype == DType::Bool ? b.CreateICmpNE(x, constant_like(x, 0)) : x;
}

llvm::Value* to_memory(Builder& b, llvm::Value* x, DType dtype) {
  return dtype == DType::Bool ? b.CreateZExt(x, integer_like(x, 8)) : x;
}

llvm::Value* convert(Builder& b, llvm::Value* x, DType from, DType to) {
  if (from == to) return x;
  if (is_storage_float(from)) return convert(b, widen_to_f32(b, x, from), DType::F32, to);
  if (to == DType::Bool) {
    if (is_float(from)) return b.CreateFCmpUNE(x, llvm::ConstantFP::get(x->getType(), 0));
    return b.CreateICmpNE(x, constant_like(x, 0));
  }
  if (is_storage_float(to)) {
    if (from == DType::F64) return round_from_f32(b, round_to_odd_f32(b, x), to);
    if (from == DType::F32) return round_from_f32(b, x, to);
    if (bits(from) == 64) x = odd_within_f64(b, x, from);
    if (bits(from) >= 32) return convert(b, int_to_float(b, x, from, DType::F64), DType::F64, to);
    return round_from_f32(b, convert(b, x, from, DType::F32), to);
  }
  llvm::Type* type = register_type(b.getContext(), to, lanes_of(x));
  if (from == DType::Bool) {
    return is_float(to) ? b.CreateUIToFP(x, type) : b.CreateZExt(x, type);
  }
  if (is_float(from) && is_float(to)) return b.CreateFPCast(x, type);
  if (is_float(from)) return float_to_int(b, x, to);
  if (is_float(to)) return int_to_float(b, x, from, to);
  return is_signed_int(from) ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
}

}  // namespace tilewright::codegen
