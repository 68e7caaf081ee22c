#include "codegen/llvm/exponential.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <numbers>
#include <span>

#include "target/exp_polynomial.h"

namespace tilewright::codegen {
namespace {

constexpr unsigned kLanes = 16;

bool is_served(const llvm::Value* x) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector && vector->getNumElements() == kLanes && vector->getElementType()->isFloatTy();
}

llvm::Value* fma(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y, llvm::Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

/// c0 + c1·x + c2·x² + … by Horner's rule.
llvm::Value* polynomial(llvm::IRBuilder<>& b, llvm::Value* x, std::span<const double> coefficients) {
  llvm::Value* sum = llvm::ConstantFP::get(x->getType(), coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    sum = fma(b, sum, x, llvm::ConstantFP::get(x->getType(), coefficients[i]));
  return sum;
}

/// p·2^n where x is not below `low`, 0 elsewhere. An infinite n decides alone, even where p is not a number.
llvm::Value* scale(llvm::IRBuilder<>& b, llvm::Value* p, llvm::Value* n, llvm::Value* x, double low) {
  llvm::Value* is_normal = b.CreateFCmpUGE(x, llvm::ConstantFP::get(x->getType(), low));
  constexpr int kCurrentRounding = 4;
  return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                           {p, n, llvm::Constant::getNullValue(x->getType()),
                            b.CreateBitCast(is_normal, b.getInt16Ty()), b.getInt32(kCurrentRounding)});
}

}  // namespace

llvm::Value* lower_exp(llvm::IRBuilder<>& b, llvm::Value* x) {
  if (!is_served(x)) return nullptr;
  const auto number = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
  // Above 89 the result is infinite, and the polynomial of a distant r could be anything.
  llvm::Value* inside = b.CreateSelect(b.CreateFCmpOLT(number(89), x), number(89), x);
  llvm::Value* n =
      b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, b.CreateFMul(inside, number(std::numbers::log2e)));
  llvm::Value* r = fma(b, n, number(-target::kLn2High), inside);
  r = fma(b, n, number(-target::kLn2Low), r);
  llvm::Value* tail = fma(b, r, polynomial(b, r, target::kExpF32), number(1));
  return scale(b, fma(b, r, tail, number(1)), n, x, -87.33654);
}

llvm::Value* lower_exp2(llvm::IRBuilder<>& b, llvm::Value* x) {
  if (!is_served(x)) return nullptr;
  llvm::Value* n = b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
  llvm::Value* r = b.CreateFSub(x, n);
  llvm::Value* p = fma(b, r, polynomial(b, r, target::kExp2F32), llvm::ConstantFP::get(x->getType(), 1));
  return scale(b, p, n, x, -126);
}

}  // namespace tilewright::codegen
