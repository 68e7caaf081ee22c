// Values from values: constants, arithmetic lane by lane, lanes.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/convert.h"
#include "codegen/llvm/dot.h"
#include "codegen/llvm/exponential.h"
#include "codegen/llvm/lower.h"

namespace tilewright::codegen {

llvm::Value* Lowering::lower_constant(const ir::Op& op) {
  const auto& c = op.as<ir::ConstantAttributes>();
  const ir::Type& t = op.result()->type;
  llvm::Type* lowered = type(t);
  if (t.dtype == DType::F16 || t.dtype == DType::F32 || t.dtype == DType::F64)
    return llvm::ConstantFP::get(lowered, c.real);
  if (is_storage_float(t.dtype))
    return convert(b_, llvm::ConstantFP::get(register_type(b_.getContext(), DType::F32, t.lanes), c.real), DType::F32,
                   t.dtype);
  return llvm::ConstantInt::get(lowered, static_cast<uint64_t>(c.integer), true);
}

llvm::Value* Lowering::lower_unary(const ir::Op& op) {
  llvm::Value* x = value(op.operands[0]);
  const DType dtype = op.operands[0]->type.dtype;
  using ir::UnaryOp;
  switch (op.as<ir::UnaryAttributes>().op) {
    case UnaryOp::Neg: return is_float(dtype) ? b_.CreateFNeg(x) : b_.CreateNeg(x);
    case UnaryOp::Abs:
      if (is_float(dtype)) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
      if (!is_signed_int(dtype)) return x;
      return b_.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {x, b_.getInt1(false)});
    case UnaryOp::Not: return b_.CreateNot(x);
    case UnaryOp::Sqrt: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case UnaryOp::Floor: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    case UnaryOp::Ceil: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
    case UnaryOp::Round: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
    case UnaryOp::IsNan: return b_.CreateFCmpUNO(x, x);
    case UnaryOp::Bitcast: return b_.CreateBitCast(x, type(op.result()->type));
    case UnaryOp::Exp: return lower_exp(b_, x);
    case UnaryOp::Exp2: return lower_exp2(b_, x);
    case UnaryOp::Log:
    case UnaryOp::Log2:
    case UnaryOp::Tanh:
    case UnaryOp::Erf:
    case UnaryOp::Sigmoid:
    case UnaryOp::Rsqrt:
    case UnaryOp::Sin:
    case UnaryOp::Cos: return nullptr;  // expand_math has replaced them
  }
  return nullptr;
}

llvm::Value* Lowering::join(ir::BinaryOp op, DType dtype, llvm::Value* x, llvm::Value* y) {
  using ir::BinaryOp;
  const bool real = is_float(dtype);
  const bool is_signed = is_signed_int(dtype);
  const auto shift_count = [&] {
    return b_.CreateAnd(y, llvm::ConstantInt::get(y->getType(), static_cast<uint64_t>(bits(dtype) - 1)));
  };
  switch (op) {
    case BinaryOp::Add: return real ? b_.CreateFAdd(x, y) : b_.CreateAdd(x, y);
    case BinaryOp::Sub: return real ? b_.CreateFSub(x, y) : b_.CreateSub(x, y);
    case BinaryOp::Mul: return real ? b_.CreateFMul(x, y) : b_.CreateMul(x, y);
    case BinaryOp::Div:
      if (real) return b_.CreateFDiv(x, y);
      return divide(BinaryOp::Div, is_signed, x, y);
    case BinaryOp::FloorDiv:
      if (real) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(x, y));
      return divide(op, is_signed, x, y);
    case BinaryOp::FloorMod:
      if (real)
        return b_.CreateFSub(x, b_.CreateFMul(y, b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(x, y))));
      return divide(op, is_signed, x, y);
    case BinaryOp::Min:
    case BinaryOp::Max: {
      const bool is_max = op == BinaryOp::Max;
      if (dtype == DType::Bool) return is_max ? b_.CreateOr(x, y) : b_.CreateAnd(x, y);
      if (!real) {
        const auto id = is_signed ? (is_max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                  : (is_max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
        return b_.CreateBinaryIntrinsic(id, x, y);
      }
      // x OP y selects y when either is NaN (the machine's min/max); a NaN in x is put back.
      llvm::Value* chosen = b_.CreateSelect(is_max ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y), x, y);
      return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, chosen);
    }
    case BinaryOp::Pow: return nullptr;  // expand_math has replaced it
    case BinaryOp::And: return b_.CreateAnd(x, y);
    case BinaryOp::Or: return b_.CreateOr(x, y);
    case BinaryOp::Xor: return b_.CreateXor(x, y);
    case BinaryOp::Shl: return b_.CreateShl(x, shift_count());
    case BinaryOp::Shr: return is_signed ? b_.CreateAShr(x, shift_count()) : b_.CreateLShr(x, shift_count());
  }
  return nullptr;
}

llvm::Value* Lowering::lower_binary(const ir::Op& op) {
  return join(op.as<ir::BinaryAttributes>().op, op.operands[0]->type.dtype, value(op.operands[0]),
              value(op.operands[1]));
}

llvm::Value* Lowering::lower_compare(const ir::Op& op) {
  using P = llvm::CmpInst::Predicate;
  struct Row {
    P real, is_signed, is_unsigned;
  };
  static constexpr Row kRows[] = {{P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ},   {P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE},
                                  {P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT}, {P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE},
                                  {P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT}, {P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE}};
  const Row& row = kRows[static_cast<size_t>(op.as<ir::CompareAttributes>().op)];
  const DType dtype = op.operands[0]->type.dtype;
  llvm::Value* x = value(op.operands[0]);
  llvm::Value* y = value(op.operands[1]);
  if (is_float(dtype)) return b_.CreateFCmp(row.real, x, y);
  return b_.CreateICmp(is_signed_int(dtype) ? row.is_signed : row.is_unsigned, x, y);
}

llvm::Value* Lowering::lower_select(const ir::Op& op) {
  return b_.CreateSelect(value(op.operands[0]), value(op.operands[1]), value(op.operands[2]));
}

llvm::Value* Lowering::lower_cast(const ir::Op& op) {
  return convert(b_, value(op.operands[0]), op.operands[0]->type.dtype, op.result()->type.dtype);
}

llvm::Value* Lowering::lower_fma(const ir::Op& op) {
  if (!is_float(op.result()->type.dtype))
    return lower_dot(b_, value(op.operands[0]), value(op.operands[1]), value(op.operands[2]));
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type(op.result()->type)},
                            {value(op.operands[0]), value(op.operands[1]), value(op.operands[2])});
}

llvm::Value* Lowering::lower_broadcast(const ir::Op& op) {
  return b_.CreateVectorSplat(static_cast<unsigned>(op.result()->type.lanes), value(op.operands[0]));
}

llvm::Value* Lowering::lower_extract(const ir::Op& op) {
  return b_.CreateExtractElement(value(op.operands[0]), static_cast<uint64_t>(op.as<ir::LaneAttributes>().lane));
}

llvm::Value* Lowering::lower_shuffle(const ir::Op& op) {
  return b_.CreateShuffleVector(value(op.operands[0]), value(op.operands[1]), op.as<ir::ShuffleAttributes>().lanes);
}

llvm::Value* Lowering::lower_reduce_lanes(const ir::Op& op) {
  return reduce_lanes(op.as<ir::ReduceLanesAttributes>().kind, op.operands[0]->type.dtype, value(op.operands[0]));
}

llvm::Value* Lowering::lower_index_value(const ir::Op& op) {
  const ir::Index x = op.as<ir::IndexAttributes>().index;
  return op.result()->type.dtype == DType::Bool ? truth(x) : index(x);
}

llvm::Value* Lowering::lower_iota(const ir::Op& op) {
  std::vector<llvm::Constant*> lanes;
  llvm::Type* element = register_type(b_.getContext(), op.result()->type.dtype, 1);
  for (int i = 0; i < op.result()->type.lanes; ++i) {
    lanes.push_back(element->isFloatingPointTy() ? llvm::ConstantFP::get(element, i)
                                                 : llvm::ConstantInt::get(element, static_cast<uint64_t>(i)));
  }
  return op.result()->type.lanes == 1 ? lanes[0] : llvm::ConstantVector::get(lanes);
}

llvm::Value* Lowering::lower_mask(const ir::Op& op) {
  const auto lanes = static_cast<unsigned>(op.result()->type.lanes);
  const ir::Index bound = op.as<ir::IndexAttributes>().index;
  llvm::Value* active = index(bound);
  if (!is_not_negative(bound.node())) active = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, active, b_.getInt64(0));
  active = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, active, b_.getInt64(lanes));
  llvm::Value* count = b_.CreateTrunc(active, b_.getInt32Ty());
  if (lanes == 1) return b_.CreateICmpNE(count, b_.getInt32(0));
  std::vector<uint32_t> iota(lanes);
  for (unsigned i = 0; i < lanes; ++i) iota[i] = i;
  return b_.CreateICmpULT(llvm::ConstantDataVector::get(b_.getContext(), iota), b_.CreateVectorSplat(lanes, count));
}

llvm::Value* Lowering::reduce_lanes(ir::ReduceKind kind, DType dtype, llvm::Value* x) {
  using ir::ReduceKind;
  if (kind == ReduceKind::AbsSum || kind == ReduceKind::AbsMax) {
    if (is_float(dtype))
      x = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    else if (is_signed_int(dtype))
      x = b_.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {x, b_.getInt1(false)});
  }
  const auto fold = [&](llvm::Value* a, llvm::Value* c) -> llvm::Value* {
    switch (kind) {
      case ReduceKind::Sum:
      case ReduceKind::AbsSum: return this->join(ir::BinaryOp::Add, dtype, a, c);
      case ReduceKind::Prod: return this->join(ir::BinaryOp::Mul, dtype, a, c);
      case ReduceKind::Max:
      case ReduceKind::AbsMax: return this->join(ir::BinaryOp::Max, dtype, a, c);
      case ReduceKind::Min: return this->join(ir::BinaryOp::Min, dtype, a, c);
      case ReduceKind::And:
      case ReduceKind::All: return b_.CreateAnd(a, c);
      case ReduceKind::Or:
      case ReduceKind::Any: return b_.CreateOr(a, c);
      case ReduceKind::Xor: return b_.CreateXor(a, c);
    }
    return nullptr;
  };
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!vector) return x;
  // Fold halves together while the width is even, then take what is left lane by lane.
  // Planted mistake 1: the upper half is forgotten.
  const bool is_planted = plant_.is("lower_arithmetic", 1);
  unsigned width = vector->getNumElements();
  while (width % 2 == 0 && width > 1) {
    std::vector<int> low, high;
    for (unsigned i = 0; i < width / 2; ++i)
      low.push_back(static_cast<int>(i)), high.push_back(static_cast<int>(is_planted ? i : i + width / 2));
    x = fold(b_.CreateShuffleVector(x, low), b_.CreateShuffleVector(x, high));
    width /= 2;
  }
  llvm::Value* total = b_.CreateExtractElement(x, uint64_t{0});
  for (unsigned i = 1; i < width; ++i) total = fold(total, b_.CreateExtractElement(x, uint64_t{i}));
  return total;
}

}  // namespace tilewright::codegen
