// Integer division as the language defines it: floor or truncation, division by zero gives 0, the one overflowing
// quotient wraps.
#include "codegen/llvm/lower.h"

namespace tilewright::codegen {
namespace {

bool is_quotient(ir::BinaryOp op) { return op == ir::BinaryOp::FloorDiv || op == ir::BinaryOp::Div; }

}  // namespace

llvm::Value* Lowering::divide(ir::BinaryOp op, bool is_signed, llvm::Value* x, llvm::Value* y) {
  llvm::Type* type = x->getType();
  llvm::Value* zero = llvm::ConstantInt::get(type, 0);
  const bool quotient = is_quotient(op);
  if (const auto* c = llvm::dyn_cast<llvm::ConstantInt>(y)) {
    if (c->getValue().isPowerOf2() && !(is_signed && c->isNegative())) {
      llvm::Value* shift = llvm::ConstantInt::get(type, c->getValue().logBase2());
      if (quotient) return is_signed ? b_.CreateAShr(x, shift) : b_.CreateLShr(x, shift);
      return b_.CreateAnd(x, llvm::ConstantInt::get(type, c->getValue() - 1));
    }
    if (is_signed && c->getValue().isStrictlyPositive()) return divide_by_constant(quotient, x, c);
    if (!is_signed && !c->isZero()) return quotient ? b_.CreateUDiv(x, y) : b_.CreateURem(x, y);
  }
  if (is_signed) return divide_floor(op, x, y);
  llvm::Value* by_zero = b_.CreateICmpEQ(y, zero);
  llvm::Value* safe = b_.CreateSelect(by_zero, llvm::ConstantInt::get(type, 1), y);
  llvm::Value* result = quotient ? b_.CreateUDiv(x, safe) : b_.CreateURem(x, safe);
  return b_.CreateSelect(by_zero, zero, result);
}

/// Floor by a positive constant: the truncated remainder's sign says whether the quotient is one too high.
llvm::Value* Lowering::divide_by_constant(bool quotient, llvm::Value* x, const llvm::ConstantInt* y) {
  auto* divisor = llvm::ConstantInt::get(x->getType(), y->getValue());
  llvm::Value* truncated = b_.CreateSDiv(x, divisor);
  llvm::Value* rest = b_.CreateSub(x, b_.CreateMul(truncated, divisor));
  llvm::Value* sign = b_.CreateAShr(rest, y->getBitWidth() - 1);
  if (quotient) return b_.CreateAdd(truncated, sign);
  return b_.CreateAdd(rest, b_.CreateAnd(sign, divisor));
}

llvm::Value* Lowering::divide_floor(ir::BinaryOp op, llvm::Value* x, llvm::Value* y) {
  llvm::Type* type = x->getType();
  llvm::Value* zero = llvm::ConstantInt::get(type, 0);
  llvm::Value* one = llvm::ConstantInt::get(type, 1);
  llvm::Value* by_zero = b_.CreateICmpEQ(y, zero);
  llvm::Value* safe = b_.CreateSelect(by_zero, one, y);
  llvm::Value* negates = b_.CreateICmpEQ(y, llvm::ConstantInt::getAllOnesValue(type));
  safe = b_.CreateSelect(negates, one, safe);
  llvm::Value* truncated = b_.CreateSDiv(x, safe);
  llvm::Value* rest = b_.CreateSub(x, b_.CreateMul(truncated, safe));
  llvm::Value* inexact = b_.CreateICmpNE(rest, zero);
  llvm::Value* differs = b_.CreateICmpSLT(b_.CreateXor(rest, safe), zero);
  llvm::Value* adjust = b_.CreateAnd(inexact, differs);
  llvm::Value* result;
  if (is_quotient(op)) {
    result = b_.CreateSelect(adjust, b_.CreateSub(truncated, one), truncated);
    result = b_.CreateSelect(negates, b_.CreateNeg(x), result);
  } else {
    result = b_.CreateSelect(adjust, b_.CreateAdd(rest, safe), rest);
    result = b_.CreateSelect(negates, zero, result);
  }
  return b_.CreateSelect(by_zero, zero, result);
}

}  // namespace tilewright::codegen
