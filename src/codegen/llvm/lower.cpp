#include "codegen/llvm/lower.h"

#include <fmt/format.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/convert.h"
#include "codegen/llvm/dot.h"

namespace tilewright::codegen {
namespace {

using ir::IndexOp;
using ir::OpKind;

/// Keeps LLVM from unrolling a loop we have already shaped.
void forbid_unrolling(llvm::BranchInst* back_edge) {
  llvm::LLVMContext& context = back_edge->getContext();
  llvm::MDNode* disable = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, disable});
  loop->replaceOperandWith(0, loop);
  back_edge->setMetadata("llvm.loop", loop);
}

bool is_hoistable_symbol(const ir::Value* v) { return v->def == nullptr || v->def->kind == OpKind::Slot; }

Status unsupported(const ir::Op& op, std::string_view what) {
  return fail_at(DiagnosticCode::E9001, op.location,
                 fmt::format("no lowering for {} in `{}`", what, ir::info(op.kind).mnemonic),
                 "this is a defect of the compiler; please report the kernel");
}

}  // namespace

Lowering::Lowering(const ir::Kernel& kernel, llvm::IRBuilder<>& builder, Target& target)
    : kernel_(kernel), b_(builder), target_(target) {
  open_scope();
  for (size_t i = 0; i < kernel.slots.size(); ++i) {
    values_[kernel.slots[i]] = target_.slot(b_, static_cast<int>(i));
    scope_of_value_[kernel.slots[i]] = 0;
  }
  restart_scope();
}

void Lowering::open_scope() {
  // An empty marker the later passes drop: a freeze of a constant has no effect and no use.
  auto* marker = llvm::cast<llvm::Instruction>(b_.Insert(new llvm::FreezeInst(b_.getInt1(false))));
  scopes_.push_back({marker, {}, {}});
}

void Lowering::restart_scope() { scopes_.back().marker->moveBefore(*b_.GetInsertBlock(), b_.GetInsertPoint()); }

void Lowering::close_scope() {
  Scope& scope = scopes_.back();
  for (const ir::Value* v : scope.bound) values_.erase(v), scope_of_value_.erase(v);
  for (const auto& [node, lowered] : scope.indices) scope_of_index_.erase(node);
  scope.marker->eraseFromParent();
  scopes_.pop_back();
}

void Lowering::bind(const ir::Value* v, llvm::Value* lowered) {
  values_[v] = lowered;
  scope_of_value_[v] = static_cast<int>(scopes_.size()) - 1;
  scopes_.back().bound.push_back(v);
}

llvm::Value* Lowering::value(const ir::Value* v) { return values_.at(v); }

llvm::Type* Lowering::type(const ir::Type& t) {
  if (t.kind == ir::TypeKind::Pointer) return b_.getPtrTy();
  return register_type(b_.getContext(), t.dtype, t.lanes);
}

// --- Index expressions
// -------------------------------------------------------------------------------------------------

/// The innermost scope an expression needs; -1 when it uses the result of an operation and so must stay where it is.
int Lowering::scope_of(const ir::IndexNode* n) {
  if (const auto found = scope_of_index_.find(n); found != scope_of_index_.end()) return found->second;
  int scope = 0;
  if (n->op == IndexOp::Symbol) {
    scope = is_hoistable_symbol(n->symbol) ? scope_of_value_.at(n->symbol) : -1;
  }
  for (const ir::IndexNode* child : {n->a, n->b, n->c}) {
    if (!child || scope < 0) continue;
    const int inner = scope_of(child);
    scope = inner < 0 ? -1 : std::max(scope, inner);
  }
  return scope;
}

llvm::Value* Lowering::index(ir::Index x) {
  const ir::IndexNode* n = x.node();
  if (n->op == IndexOp::Const) return b_.getInt64(static_cast<uint64_t>(n->value));
  if (n->op == IndexOp::Symbol) return value(n->symbol);
  const int home = scope_of(n);
  if (home < 0) return emit_index(n);
  Scope& scope = scopes_[static_cast<size_t>(home)];
  if (const auto found = scope.indices.find(n); found != scope.indices.end()) return found->second;
  const llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(scope.marker);
  llvm::Value* lowered = emit_index(n);
  scopes_[static_cast<size_t>(home)].indices.emplace(n, lowered);
  scope_of_index_[n] = home;
  return lowered;
}

llvm::Value* Lowering::emit_index(const ir::IndexNode* n) {
  const auto operand = [&](const ir::IndexNode* child) { return index(ir::Index(child)); };
  const auto truth = [&](const ir::IndexNode* child) { return b_.CreateICmpNE(operand(child), b_.getInt64(0)); };
  const auto widen = [&](llvm::Value* bit) { return b_.CreateZExt(bit, b_.getInt64Ty()); };
  switch (n->op) {
    case IndexOp::Const:
    case IndexOp::Symbol: return index(ir::Index(n));
    case IndexOp::Add: return b_.CreateAdd(operand(n->a), operand(n->b));
    case IndexOp::Mul: return b_.CreateMul(operand(n->a), operand(n->b));
    case IndexOp::FloorDiv: return integer_division(ir::BinaryOp::FloorDiv, true, operand(n->a), operand(n->b));
    case IndexOp::FloorMod: return integer_division(ir::BinaryOp::FloorMod, true, operand(n->a), operand(n->b));
    case IndexOp::Min: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, operand(n->a), operand(n->b));
    case IndexOp::Max: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, operand(n->a), operand(n->b));
    case IndexOp::Select: return b_.CreateSelect(truth(n->a), operand(n->b), operand(n->c));
    case IndexOp::Lt: return widen(b_.CreateICmpSLT(operand(n->a), operand(n->b)));
    case IndexOp::Le: return widen(b_.CreateICmpSLE(operand(n->a), operand(n->b)));
    case IndexOp::Eq: return widen(b_.CreateICmpEQ(operand(n->a), operand(n->b)));
    case IndexOp::Ne: return widen(b_.CreateICmpNE(operand(n->a), operand(n->b)));
    case IndexOp::And: return widen(b_.CreateAnd(truth(n->a), truth(n->b)));
    case IndexOp::Or: return widen(b_.CreateOr(truth(n->a), truth(n->b)));
    case IndexOp::Not: return widen(b_.CreateNot(truth(n->a)));
  }
  return nullptr;
}

/// Floor semantics for signed operands; division by zero gives 0 and the one overflowing quotient wraps.
llvm::Value* Lowering::integer_division(ir::BinaryOp op, bool is_signed, llvm::Value* x, llvm::Value* y) {
  llvm::Type* type = x->getType();
  llvm::Value* zero = llvm::ConstantInt::get(type, 0);
  llvm::Value* one = llvm::ConstantInt::get(type, 1);
  const bool quotient = op == ir::BinaryOp::FloorDiv || op == ir::BinaryOp::Div;
  if (const auto* c = llvm::dyn_cast<llvm::ConstantInt>(y);
      c && c->getValue().isPowerOf2() && !(is_signed && c->isNegative())) {
    llvm::Value* shift = llvm::ConstantInt::get(type, c->getValue().logBase2());
    if (quotient) return is_signed ? b_.CreateAShr(x, shift) : b_.CreateLShr(x, shift);
    return b_.CreateAnd(x, llvm::ConstantInt::get(type, c->getValue() - 1));
  }
  llvm::Value* by_zero = b_.CreateICmpEQ(y, zero);
  llvm::Value* safe = b_.CreateSelect(by_zero, one, y);
  if (!is_signed) {
    llvm::Value* result = quotient ? b_.CreateUDiv(x, safe) : b_.CreateURem(x, safe);
    return b_.CreateSelect(by_zero, zero, result);
  }
  llvm::Value* minus_one = llvm::ConstantInt::getAllOnesValue(type);
  llvm::Value* negates = b_.CreateICmpEQ(y, minus_one);
  safe = b_.CreateSelect(negates, one, safe);
  llvm::Value* truncated = b_.CreateSDiv(x, safe);
  llvm::Value* rest = b_.CreateSub(x, b_.CreateMul(truncated, safe));
  llvm::Value* inexact = b_.CreateICmpNE(rest, zero);
  llvm::Value* differs = b_.CreateICmpSLT(b_.CreateXor(rest, safe), zero);
  llvm::Value* adjust = b_.CreateAnd(inexact, differs);
  llvm::Value* result;
  if (quotient) {
    result = b_.CreateSelect(adjust, b_.CreateSub(truncated, one), truncated);
    result = b_.CreateSelect(negates, b_.CreateNeg(x), result);
  } else {
    result = b_.CreateSelect(adjust, b_.CreateAdd(rest, safe), rest);
    result = b_.CreateSelect(negates, zero, result);
  }
  return b_.CreateSelect(by_zero, zero, result);
}

// --- Structure
// ---------------------------------------------------------------------------------------------------------

Status Lowering::lower_region(const ir::Region& region) {
  for (const ir::Op* op : region.ops) {
    mark_debug_location(*op);
    if (Status done = lower_op(*op); !done) return done;
  }
  return {};
}

void Lowering::mark_debug_location(const ir::Op& op) {
  llvm::DISubprogram* subprogram = b_.GetInsertBlock()->getParent()->getSubprogram();
  if (!subprogram || !op.location.is_known()) return;
  b_.SetCurrentDebugLocation(llvm::DILocation::get(b_.getContext(), static_cast<unsigned>(op.location.line),
                                                   static_cast<unsigned>(op.location.column), subprogram));
}

Status Lowering::lower_for(const ir::Op& op) {
  const auto& attributes = op.as<ir::ForAttributes>();
  llvm::Value* lo = index(attributes.lo);
  llvm::Value* hi = index(attributes.hi);
  llvm::Value* step = index(attributes.step);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* body = llvm::BasicBlock::Create(b_.getContext(), "for.body", function);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "for.end", function);
  std::vector<llvm::Value*> initial;
  for (const ir::Value* v : op.operands) initial.push_back(value(v));
  const auto constant_lo = attributes.lo.constant(), constant_hi = attributes.hi.constant();
  const bool runs = constant_lo && constant_hi && *constant_lo < *constant_hi;
  if (runs)
    b_.CreateBr(body);
  else
    b_.CreateCondBr(b_.CreateICmpSLT(lo, hi), body, after);

  b_.SetInsertPoint(body);
  llvm::PHINode* variable = b_.CreatePHI(b_.getInt64Ty(), 2, "i");
  std::vector<llvm::PHINode*> carried;
  for (llvm::Value* v : initial) carried.push_back(b_.CreatePHI(v->getType(), 2));
  open_scope();
  const ir::Region& region = *op.regions[0];
  bind(region.arguments[0], variable);
  for (size_t i = 0; i < carried.size(); ++i) bind(region.arguments[i + 1], carried[i]);
  yielded_.clear();
  if (Status done = lower_region(region); !done) return done;
  const std::vector<llvm::Value*> next = yielded_;
  close_scope();
  llvm::Value* advanced = b_.CreateAdd(variable, step, "", false, true);
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  forbid_unrolling(b_.CreateCondBr(b_.CreateICmpSLT(advanced, hi), body, after));
  variable->addIncoming(lo, before), variable->addIncoming(advanced, latch);
  for (size_t i = 0; i < carried.size(); ++i)
    carried[i]->addIncoming(initial[i], before), carried[i]->addIncoming(next[i], latch);

  b_.SetInsertPoint(after);
  for (size_t i = 0; i < carried.size(); ++i) {
    llvm::PHINode* result = b_.CreatePHI(initial[i]->getType(), 2);
    if (!runs) result->addIncoming(initial[i], before);
    result->addIncoming(next[i], latch);
    bind(op.results[i], result);
  }
  return {};
}

Status Lowering::lower_if(const ir::Op& op) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "if.end", function);
  llvm::BasicBlock* starts[2];
  for (auto*& start : starts) start = llvm::BasicBlock::Create(b_.getContext(), "if.side", function);
  b_.CreateCondBr(value(op.operands[0]), starts[0], starts[1]);
  std::vector<llvm::Value*> results[2];
  llvm::BasicBlock* ends[2];
  for (size_t side = 0; side < 2; ++side) {
    b_.SetInsertPoint(starts[side]);
    open_scope();
    yielded_.clear();
    if (side < op.regions.size()) {
      if (Status done = lower_region(*op.regions[side]); !done) return done;
    }
    results[side] = yielded_;
    close_scope();
    ends[side] = b_.GetInsertBlock();
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
  for (size_t i = 0; i < op.results.size(); ++i) {
    llvm::PHINode* joined = b_.CreatePHI(type(op.results[i]->type), 2);
    for (size_t side = 0; side < 2; ++side) joined->addIncoming(results[side][i], ends[side]);
    bind(op.results[i], joined);
  }
  return {};
}

Status Lowering::lower_while(const ir::Op& op) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* test = llvm::BasicBlock::Create(b_.getContext(), "while.test", function);
  auto* body = llvm::BasicBlock::Create(b_.getContext(), "while.body", function);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "while.end", function);
  b_.CreateBr(test);
  b_.SetInsertPoint(test);
  open_scope();
  yielded_.clear();
  if (Status done = lower_region(*op.regions[0]); !done) return done;
  llvm::Value* again = yielded_.at(0);
  close_scope();
  b_.CreateCondBr(again, body, after);
  b_.SetInsertPoint(body);
  open_scope();
  if (Status done = lower_region(*op.regions[1]); !done) return done;
  close_scope();
  forbid_unrolling(b_.CreateBr(test));
  b_.SetInsertPoint(after);
  return {};
}

// --- Operations
// --------------------------------------------------------------------------------------------------------

Status Lowering::lower_op(const ir::Op& op) {
  const auto give = [&](llvm::Value* lowered) -> Status {
    if (!lowered) return unsupported(op, "this form");
    bind(op.result(), lowered);
    return {};
  };
  switch (op.kind) {
    case OpKind::For: return lower_for(op);
    case OpKind::If: return lower_if(op);
    case OpKind::While: return lower_while(op);
    case OpKind::Yield: {
      yielded_.clear();
      for (const ir::Value* v : op.operands) yielded_.push_back(value(v));
      return {};
    }
    case OpKind::Constant: return give(lower_constant(op));
    case OpKind::IndexValue: {
      llvm::Value* x = index(op.as<ir::IndexAttributes>().index);
      return give(op.result()->type.dtype == DType::Bool ? b_.CreateICmpNE(x, b_.getInt64(0)) : x);
    }
    case OpKind::Unary: return give(lower_unary(op));
    case OpKind::Binary:
      return give(lower_binary(op.as<ir::BinaryAttributes>().op, op.operands[0]->type.dtype, value(op.operands[0]),
                               value(op.operands[1])));
    case OpKind::Compare:
      return give(lower_compare(op.as<ir::CompareAttributes>().op, op.operands[0]->type.dtype, value(op.operands[0]),
                                value(op.operands[1])));
    case OpKind::Select:
      return give(b_.CreateSelect(value(op.operands[0]), value(op.operands[1]), value(op.operands[2])));
    case OpKind::Cast:
      return give(convert(b_, value(op.operands[0]), op.operands[0]->type.dtype, op.result()->type.dtype));
    case OpKind::Fma:
      if (!is_float(op.result()->type.dtype))
        return give(lower_dot(b_, value(op.operands[0]), value(op.operands[1]), value(op.operands[2])));
      return give(b_.CreateIntrinsic(llvm::Intrinsic::fma, {type(op.result()->type)},
                                     {value(op.operands[0]), value(op.operands[1]), value(op.operands[2])}));
    case OpKind::Slot: {
      const int number = op.as<ir::SlotAttributes>().number;
      llvm::Value*& slot = slots_[number];
      if (!slot) {
        const llvm::IRBuilder<>::InsertPointGuard guard(b_);
        b_.SetInsertPoint(scopes_[0].marker);
        slot = target_.slot(b_, number);
      }
      values_[op.result()] = slot;
      scope_of_value_[op.result()] = 0;
      return {};
    }
    case OpKind::ArgumentPointer: {
      const int number = op.as<ir::SlotAttributes>().number;
      llvm::Value*& argument = arguments_[number];
      if (!argument) {
        const llvm::IRBuilder<>::InsertPointGuard guard(b_);
        b_.SetInsertPoint(scopes_[0].marker);
        argument = target_.argument(b_, number);
      }
      return give(argument);
    }
    case OpKind::ScratchPointer:
      return give(b_.CreateGEP(b_.getInt8Ty(), target_.scratch(b_), index(op.as<ir::OffsetAttributes>().bytes)));
    case OpKind::Offset:
      return give(b_.CreateGEP(b_.getInt8Ty(), value(op.operands[0]), index(op.as<ir::OffsetAttributes>().bytes)));
    case OpKind::VectorLoad: return give(lower_load(op));
    case OpKind::VectorStore: return lower_store(op), Status{};
    case OpKind::Gather: return give(lower_gather(op));
    case OpKind::Scatter: return lower_scatter(op), Status{};
    case OpKind::Broadcast:
      return give(b_.CreateVectorSplat(static_cast<unsigned>(op.result()->type.lanes), value(op.operands[0])));
    case OpKind::Iota: {
      std::vector<llvm::Constant*> lanes;
      llvm::Type* element = register_type(b_.getContext(), op.result()->type.dtype, 1);
      for (int i = 0; i < op.result()->type.lanes; ++i) {
        lanes.push_back(element->isFloatingPointTy() ? llvm::ConstantFP::get(element, i)
                                                     : llvm::ConstantInt::get(element, static_cast<uint64_t>(i)));
      }
      return give(op.result()->type.lanes == 1 ? lanes[0] : llvm::ConstantVector::get(lanes));
    }
    case OpKind::Extract:
      return give(
          b_.CreateExtractElement(value(op.operands[0]), static_cast<uint64_t>(op.as<ir::LaneAttributes>().lane)));
    case OpKind::Shuffle:
      return give(
          b_.CreateShuffleVector(value(op.operands[0]), value(op.operands[1]), op.as<ir::ShuffleAttributes>().lanes));
    case OpKind::VectorReduce:
      return give(lower_lanes_reduction(op.as<ir::ReduceLanesAttributes>().kind, op.operands[0]->type.dtype,
                                        value(op.operands[0])));
    case OpKind::Mask: return give(lower_mask(op));
    case OpKind::AtomicMemory: return give(lower_atomic(op));
    case OpKind::Prefetch: {
      // Locality 3: every level; 2: from the second level on.
      const uint32_t locality = op.as<ir::MemoryAttributes>().streaming ? 2 : 3;
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                         {address(op), b_.getInt32(0), b_.getInt32(locality), b_.getInt32(1)});
      return {};
    }
    case OpKind::Assert: return lower_assert(op), Status{};
    case OpKind::Assume: return {};
    case OpKind::Print: {
      std::vector<llvm::Value*> values;
      std::vector<DType> dtypes;
      for (const ir::Value* v : op.operands) values.push_back(value(v)), dtypes.push_back(v->type.dtype);
      target_.print(b_, op.as<ir::TextAttributes>().id, values, dtypes);
      return {};
    }
    case OpKind::Return: return target_.end_block(b_), Status{};
    case OpKind::Func:
    case OpKind::Grid:
    case OpKind::Pipelined:
    case OpKind::Parallel:
    case OpKind::Alloc:
    case OpKind::Fill:
    case OpKind::Copy:
    case OpKind::Gemm:
    case OpKind::Reduce:
    case OpKind::ReduceArg:
    case OpKind::Scan:
    case OpKind::AtomicTile:
    case OpKind::ArriveLast:
    case OpKind::Load:
    case OpKind::Store:
    case OpKind::Atomic: break;
  }
  if (target_.lower(op)) return {};
  return unsupported(op, "a higher phase's operation");
}

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
    case UnaryOp::Exp:
    case UnaryOp::Exp2:
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

llvm::Value* Lowering::lower_binary(ir::BinaryOp op, DType dtype, llvm::Value* x, llvm::Value* y) {
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
      return integer_division(BinaryOp::Div, is_signed, x, y);
    case BinaryOp::FloorDiv:
      if (real) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(x, y));
      return integer_division(op, is_signed, x, y);
    case BinaryOp::FloorMod:
      if (real)
        return b_.CreateFSub(x, b_.CreateFMul(y, b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(x, y))));
      return integer_division(op, is_signed, x, y);
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

llvm::Value* Lowering::lower_compare(ir::CompareOp op, DType dtype, llvm::Value* x, llvm::Value* y) {
  using P = llvm::CmpInst::Predicate;
  struct Row {
    P real, is_signed, is_unsigned;
  };
  static constexpr Row kRows[] = {{P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ},   {P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE},
                                  {P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT}, {P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE},
                                  {P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT}, {P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE}};
  const Row& row = kRows[static_cast<size_t>(op)];
  if (is_float(dtype)) return b_.CreateFCmp(row.real, x, y);
  return b_.CreateICmp(is_signed_int(dtype) ? row.is_signed : row.is_unsigned, x, y);
}

llvm::Value* Lowering::lower_mask(const ir::Op& op) {
  const auto lanes = static_cast<unsigned>(op.result()->type.lanes);
  llvm::Value* active = index(op.as<ir::IndexAttributes>().index);
  active = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, active, b_.getInt64(0));
  active = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, active, b_.getInt64(lanes));
  llvm::Value* count = b_.CreateTrunc(active, b_.getInt32Ty());
  if (lanes == 1) return b_.CreateICmpNE(count, b_.getInt32(0));
  std::vector<uint32_t> iota(lanes);
  for (unsigned i = 0; i < lanes; ++i) iota[i] = i;
  return b_.CreateICmpULT(llvm::ConstantDataVector::get(b_.getContext(), iota), b_.CreateVectorSplat(lanes, count));
}

llvm::Value* Lowering::lower_lanes_reduction(ir::ReduceKind kind, DType dtype, llvm::Value* x) {
  using ir::ReduceKind;
  if (kind == ReduceKind::AbsSum || kind == ReduceKind::AbsMax) {
    if (is_float(dtype))
      x = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    else if (is_signed_int(dtype))
      x = b_.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {x, b_.getInt1(false)});
  }
  const auto join = [&](llvm::Value* a, llvm::Value* c) -> llvm::Value* {
    switch (kind) {
      case ReduceKind::Sum:
      case ReduceKind::AbsSum: return lower_binary(ir::BinaryOp::Add, dtype, a, c);
      case ReduceKind::Prod: return lower_binary(ir::BinaryOp::Mul, dtype, a, c);
      case ReduceKind::Max:
      case ReduceKind::AbsMax: return lower_binary(ir::BinaryOp::Max, dtype, a, c);
      case ReduceKind::Min: return lower_binary(ir::BinaryOp::Min, dtype, a, c);
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
  unsigned width = vector->getNumElements();
  while (width % 2 == 0 && width > 1) {
    std::vector<int> low, high;
    for (unsigned i = 0; i < width / 2; ++i)
      low.push_back(static_cast<int>(i)), high.push_back(static_cast<int>(i + width / 2));
    x = join(b_.CreateShuffleVector(x, low), b_.CreateShuffleVector(x, high));
    width /= 2;
  }
  llvm::Value* total = b_.CreateExtractElement(x, uint64_t{0});
  for (unsigned i = 1; i < width; ++i) total = join(total, b_.CreateExtractElement(x, uint64_t{i}));
  return total;
}

// --- Memory
// ------------------------------------------------------------------------------------------------------------

llvm::Value* Lowering::address(const ir::Op& op) {
  const auto& m = op.as<ir::MemoryAttributes>();
  llvm::Value* base = value(op.operands[0]);
  if (!m.bytes || m.bytes.is_constant(0)) return base;
  return b_.CreateGEP(b_.getInt8Ty(), base, index(m.bytes));
}

llvm::Value* Lowering::lower_load(const ir::Op& op) {
  const auto& m = op.as<ir::MemoryAttributes>();
  const ir::Type& t = op.result()->type;
  llvm::Type* memory = memory_type(b_.getContext(), m.storage, t.lanes);
  const llvm::Align align(static_cast<uint64_t>(std::max(m.align, 1)));
  llvm::Value* loaded;
  if (op.operands.size() > 1 && t.lanes > 1) {
    loaded =
        b_.CreateMaskedLoad(memory, address(op), align, value(op.operands[1]), llvm::Constant::getNullValue(memory));
  } else if (op.operands.size() > 1) {
    // One lane: touch memory only when the mask says so, by reading a zero on the stack otherwise.
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    llvm::IRBuilder<> entry(&function->getEntryBlock(), function->getEntryBlock().begin());
    llvm::AllocaInst* zero = entry.CreateAlloca(memory);
    entry.CreateStore(llvm::Constant::getNullValue(memory), zero);
    loaded = b_.CreateAlignedLoad(memory, b_.CreateSelect(value(op.operands[1]), address(op), zero), llvm::Align(1));
  } else {
    auto* load = b_.CreateAlignedLoad(memory, address(op), align);
    if (m.streaming)
      load->setMetadata(llvm::LLVMContext::MD_nontemporal,
                        llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
    loaded = load;
  }
  return convert(b_, from_memory(b_, loaded, m.storage), m.storage, t.dtype);
}

void Lowering::lower_store(const ir::Op& op) {
  const auto& m = op.as<ir::MemoryAttributes>();
  const ir::Type& t = op.operands[1]->type;
  llvm::Value* x = to_memory(b_, convert(b_, value(op.operands[1]), t.dtype, m.storage), m.storage);
  const llvm::Align align(static_cast<uint64_t>(std::max(m.align, 1)));
  if (op.operands.size() > 2 && t.lanes > 1) {
    b_.CreateMaskedStore(x, address(op), align, value(op.operands[2]));
    return;
  }
  llvm::Value* target = address(op);
  if (op.operands.size() > 2) {
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    llvm::IRBuilder<> entry(&function->getEntryBlock(), function->getEntryBlock().begin());
    target = b_.CreateSelect(value(op.operands[2]), target, entry.CreateAlloca(x->getType()));
    b_.CreateAlignedStore(x, target, llvm::Align(1));
    return;
  }
  if (m.streaming && t.lanes > 1) {
    store_streaming(x, target, align);
    return;
  }
  b_.CreateAlignedStore(x, target, align);
}

/// Past the caches when the address is a multiple of the vector's size, else an ordinary store.
void Lowering::store_streaming(llvm::Value* x, llvm::Value* target, llvm::Align align) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  const uint64_t size = function->getParent()->getDataLayout().getTypeStoreSize(x->getType());
  llvm::Value* low = b_.CreateAnd(b_.CreatePtrToInt(target, b_.getInt64Ty()), b_.getInt64(size - 1));
  auto* aligned = llvm::BasicBlock::Create(b_.getContext(), "store.streaming", function);
  auto* ordinary = llvm::BasicBlock::Create(b_.getContext(), "store.ordinary", function);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "store.end", function);
  b_.CreateCondBr(b_.CreateICmpEQ(low, b_.getInt64(0)), aligned, ordinary);
  b_.SetInsertPoint(aligned);
  auto* store = b_.CreateAlignedStore(x, target, llvm::Align(size));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  b_.CreateBr(after);
  b_.SetInsertPoint(ordinary);
  b_.CreateAlignedStore(x, target, align);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

llvm::Value* Lowering::lower_gather(const ir::Op& op) {
  const auto& m = op.as<ir::MemoryAttributes>();
  const ir::Type& t = op.result()->type;
  llvm::Type* memory = memory_type(b_.getContext(), m.storage, t.lanes);
  llvm::Value* pointers = b_.CreateGEP(b_.getInt8Ty(), address(op), value(op.operands[1]));
  llvm::Value* mask = op.operands.size() > 2
                          ? value(op.operands[2])
                          : llvm::Constant::getAllOnesValue(register_type(b_.getContext(), DType::Bool, t.lanes));
  const llvm::Align align(static_cast<uint64_t>(std::max(m.align, 1)));
  llvm::Value* loaded = b_.CreateMaskedGather(memory, pointers, align, mask, llvm::Constant::getNullValue(memory));
  return convert(b_, from_memory(b_, loaded, m.storage), m.storage, t.dtype);
}

void Lowering::lower_scatter(const ir::Op& op) {
  const auto& m = op.as<ir::MemoryAttributes>();
  const ir::Type& t = op.operands[2]->type;
  llvm::Value* x = to_memory(b_, convert(b_, value(op.operands[2]), t.dtype, m.storage), m.storage);
  llvm::Value* pointers = b_.CreateGEP(b_.getInt8Ty(), address(op), value(op.operands[1]));
  llvm::Value* mask = op.operands.size() > 3
                          ? value(op.operands[3])
                          : llvm::Constant::getAllOnesValue(register_type(b_.getContext(), DType::Bool, t.lanes));
  b_.CreateMaskedScatter(x, pointers, llvm::Align(static_cast<uint64_t>(std::max(m.align, 1))), mask);
}

/// A compare-and-swap loop on the storage bits: works for every dtype and kind with the language's own arithmetic.
llvm::Value* Lowering::lower_atomic(const ir::Op& op) {
  const auto& attributes = op.as<ir::AtomicMemoryAttributes>();
  const DType storage = attributes.storage;
  const DType compute = op.operands[1]->type.dtype;
  llvm::Value* pointer = value(op.operands[0]);
  llvm::Value* operand = value(op.operands[1]);
  const bool plain_integer = is_int(storage) && storage == compute;
  if (plain_integer) {
    using RMW = llvm::AtomicRMWInst;
    const bool is_signed = is_signed_int(storage);
    RMW::BinOp rmw = RMW::Add;
    switch (attributes.kind) {
      case ir::AtomicKind::Add: rmw = RMW::Add; break;
      case ir::AtomicKind::Max: rmw = is_signed ? RMW::Max : RMW::UMax; break;
      case ir::AtomicKind::Min: rmw = is_signed ? RMW::Min : RMW::UMin; break;
      case ir::AtomicKind::Or: rmw = RMW::Or; break;
    }
    return b_.CreateAtomicRMW(rmw, pointer, operand, llvm::MaybeAlign(), llvm::AtomicOrdering::Monotonic);
  }
  llvm::Type* bits_type = b_.getIntNTy(static_cast<unsigned>(bits(storage)));
  llvm::Type* stored_type = memory_type(b_.getContext(), storage, 1);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* loop = llvm::BasicBlock::Create(b_.getContext(), "atomic", function);
  auto* done = llvm::BasicBlock::Create(b_.getContext(), "atomic.end", function);
  auto* first = b_.CreateLoad(bits_type, pointer);
  first->setAtomic(llvm::AtomicOrdering::Monotonic);
  first->setAlignment(llvm::Align(static_cast<uint64_t>(bytes(storage))));
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* seen = b_.CreatePHI(bits_type, 2);
  llvm::Value* old = convert(b_, from_memory(b_, b_.CreateBitCast(seen, stored_type), storage), storage, compute);
  static constexpr ir::BinaryOp kJoin[] = {ir::BinaryOp::Add, ir::BinaryOp::Max, ir::BinaryOp::Min, ir::BinaryOp::Or};
  llvm::Value* joined = lower_binary(kJoin[static_cast<size_t>(attributes.kind)], compute, old, operand);
  llvm::Value* wanted = b_.CreateBitCast(to_memory(b_, convert(b_, joined, compute, storage), storage), bits_type);
  auto* exchange = b_.CreateAtomicCmpXchg(pointer, seen, wanted, llvm::MaybeAlign(), llvm::AtomicOrdering::Monotonic,
                                          llvm::AtomicOrdering::Monotonic);
  seen->addIncoming(first, before), seen->addIncoming(b_.CreateExtractValue(exchange, 0), b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateExtractValue(exchange, 1), done, loop);
  b_.SetInsertPoint(done);
  return old;
}

void Lowering::lower_assert(const ir::Op& op) {
  llvm::Value* holds = lower_lanes_reduction(ir::ReduceKind::All, DType::Bool, value(op.operands[0]));
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* failed = llvm::BasicBlock::Create(b_.getContext(), "assert.failed", function);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "assert.passed", function);
  b_.CreateCondBr(holds, after, failed);
  b_.SetInsertPoint(failed);
  target_.assert_failed(b_, op.as<ir::TextAttributes>().id);
  target_.end_block(b_);
  b_.SetInsertPoint(after);
}

}  // namespace tilewright::codegen
