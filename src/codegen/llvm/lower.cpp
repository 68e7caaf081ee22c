#include "codegen/llvm/lower.h"

#include <fmt/format.h>
#include <llvm/IR/DebugInfoMetadata.h>

#include "codegen/llvm/convert.h"

namespace tilewright::codegen {
namespace {

using ir::OpKind;

Status unsupported(const ir::Op& op, std::string_view what) {
  return fail_at(DiagnosticCode::E9001, op.location,
                 fmt::format("no lowering for {} in `{}`", what, ir::info(op.kind).mnemonic),
                 "this is a defect of the compiler; please report the kernel");
}

}  // namespace

Lowering::Lowering(const ir::Kernel& kernel, llvm::IRBuilder<>& builder, Target& target, const Plant& plant)
    : kernel_(kernel), b_(builder), target_(target), plant_(plant) {
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
  scopes_.push_back({marker, {}, {}, {}});
}

void Lowering::restart_scope() { scopes_.back().marker->moveBefore(*b_.GetInsertBlock(), b_.GetInsertPoint()); }

void Lowering::close_scope() {
  Scope& scope = scopes_.back();
  for (const ir::Value* v : scope.bound) values_.erase(v), scope_of_value_.erase(v);
  for (const auto& [node, lowered] : scope.indices) scope_of_index_.erase(node);
  for (const auto& [node, lowered] : scope.truths) scope_of_index_.erase(node);
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

Status Lowering::give(const ir::Op& op, llvm::Value* lowered) {
  if (!lowered) return unsupported(op, "this form");
  bind(op.result(), lowered);
  return {};
}

Status Lowering::lower_op(const ir::Op& op) {
  switch (op.kind) {
    case OpKind::For: return lower_for(op);
    case OpKind::If: return lower_if(op);
    case OpKind::While: return lower_while(op);
    case OpKind::Yield: return lower_yield(op);
    case OpKind::Return: return target_.end_block(b_), Status{};
    case OpKind::Assert: return lower_assert(op);
    case OpKind::Assume: return {};
    case OpKind::Print: return lower_print(op);
    case OpKind::Slot: return lower_slot(op);
    case OpKind::ArgumentPointer: return give(op, lower_argument(op));
    case OpKind::ScratchPointer: return give(op, lower_offset(op, target_.scratch(b_)));
    case OpKind::Offset: return give(op, lower_offset(op, value(op.operands[0])));
    case OpKind::Constant: return give(op, lower_constant(op));
    case OpKind::IndexValue: return give(op, lower_index_value(op));
    case OpKind::Iota: return give(op, lower_iota(op));
    case OpKind::Unary: return give(op, lower_unary(op));
    case OpKind::Binary: return give(op, lower_binary(op));
    case OpKind::Compare: return give(op, lower_compare(op));
    case OpKind::Select: return give(op, lower_select(op));
    case OpKind::Cast: return give(op, lower_cast(op));
    case OpKind::Fma: return give(op, lower_fma(op));
    case OpKind::Broadcast: return give(op, lower_broadcast(op));
    case OpKind::Extract: return give(op, lower_extract(op));
    case OpKind::Shuffle: return give(op, lower_shuffle(op));
    case OpKind::VectorReduce: return give(op, lower_reduce_lanes(op));
    case OpKind::Mask: return give(op, lower_mask(op));
    case OpKind::VectorLoad: return give(op, lower_load(op));
    case OpKind::VectorStore: return lower_store(op);
    case OpKind::Gather: return give(op, lower_gather(op));
    case OpKind::Scatter: return lower_scatter(op);
    case OpKind::AtomicMemory: return give(op, lower_atomic(op));
    case OpKind::Prefetch: return lower_prefetch(op);
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

Status Lowering::lower_slot(const ir::Op& op) {
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

llvm::Value* Lowering::lower_argument(const ir::Op& op) {
  const int number = op.as<ir::SlotAttributes>().number;
  llvm::Value*& argument = arguments_[number];
  if (!argument) {
    const llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(scopes_[0].marker);
    argument = target_.argument(b_, number);
  }
  return argument;
}

Status Lowering::lower_print(const ir::Op& op) {
  std::vector<llvm::Value*> values;
  std::vector<DType> dtypes;
  for (const ir::Value* v : op.operands) values.push_back(value(v)), dtypes.push_back(v->type.dtype);
  target_.print(b_, op.as<ir::TextAttributes>().id, values, dtypes);
  return {};
}

}  // namespace tilewright::codegen
