// Loops, branches and assertions.
#include "codegen/llvm/lower.h"

namespace tilewright::codegen {
namespace {

/// Keeps LLVM from unrolling a loop we have already shaped.
void forbid_unrolling(llvm::BranchInst* back_edge) {
  llvm::LLVMContext& context = back_edge->getContext();
  llvm::MDNode* disable = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, disable});
  loop->replaceOperandWith(0, loop);
  back_edge->setMetadata("llvm.loop", loop);
}

}  // namespace

Status Lowering::lower_yield(const ir::Op& op) {
  yielded_.clear();
  for (const ir::Value* v : op.operands) yielded_.push_back(value(v));
  return {};
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
  if (constant_lo && *constant_lo >= 0) assume_not_negative(region.arguments[0]);
  limit_of_[region.arguments[0]] = attributes.hi.node();
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

/// One side of an `if`, from the builder's position on; gives what it yields.
Status Lowering::lower_side(const ir::Region& region, std::vector<llvm::Value*>& results) {
  open_scope();
  yielded_.clear();
  if (Status done = lower_region(region); !done) return done;
  results = yielded_;
  close_scope();
  return {};
}

Status Lowering::lower_if(const ir::Op& op) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* yes = llvm::BasicBlock::Create(b_.getContext(), "if.yes", function);
  const bool has_no = op.regions.size() > 1 && !op.regions[1]->ops.empty();
  auto* no = has_no ? llvm::BasicBlock::Create(b_.getContext(), "if.no", function) : nullptr;
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "if.end", function);
  b_.CreateCondBr(value(op.operands[0]), yes, has_no ? no : after);
  std::vector<llvm::Value*> results[2];
  llvm::BasicBlock* ends[2] = {};
  for (size_t side = 0; side < (has_no ? 2 : 1); ++side) {
    b_.SetInsertPoint(side == 0 ? yes : no);
    if (Status done = lower_side(*op.regions[side], results[side]); !done) return done;
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

Status Lowering::lower_assert(const ir::Op& op) {
  llvm::Value* holds = reduce_lanes(ir::ReduceKind::All, DType::Bool, value(op.operands[0]));
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* failed = llvm::BasicBlock::Create(b_.getContext(), "assert.failed", function);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "assert.passed", function);
  b_.CreateCondBr(holds, after, failed);
  b_.SetInsertPoint(failed);
  target_.assert_failed(b_, op.as<ir::TextAttributes>().id);
  target_.end_block(b_);
  b_.SetInsertPoint(after);
  return {};
}

}  // namespace tilewright::codegen
