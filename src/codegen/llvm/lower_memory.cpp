// Loads, stores and atomics.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/convert.h"
#include "codegen/llvm/lower.h"

namespace tilewright::codegen {

/// The constant part of an offset stays apart, where an address can absorb it and neighbours share the rest.
llvm::Value* Lowering::offset(llvm::Value* base, ir::Index bytes) {
  const ir::IndexNode* n = bytes.node();
  if (n->op == ir::IndexOp::Add && n->b->op == ir::IndexOp::Const) {
    base = b_.CreateGEP(b_.getInt8Ty(), base, index(ir::Index(n->a)));
    return b_.CreateGEP(b_.getInt8Ty(), base, index(ir::Index(n->b)));
  }
  return b_.CreateGEP(b_.getInt8Ty(), base, index(bytes));
}

llvm::Value* Lowering::lower_offset(const ir::Op& op, llvm::Value* base) {
  return offset(base, op.as<ir::OffsetAttributes>().bytes);
}

llvm::Value* Lowering::address(const ir::Op& op) {
  const auto& m = op.as<ir::MemoryAttributes>();
  llvm::Value* base = value(op.operands[0]);
  if (!m.bytes || m.bytes.is_constant(0)) return base;
  return offset(base, m.bytes);
}

/// Stack memory as large as the largest element, for scalar accesses that a mask switches off.
llvm::AllocaInst* Lowering::spare_memory(llvm::AllocaInst*& spare, bool is_zero) {
  if (spare) return spare;
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::IRBuilder<> entry(&function->getEntryBlock(), function->getEntryBlock().begin());
  spare = entry.CreateAlloca(entry.getInt64Ty());
  if (is_zero) entry.CreateStore(entry.getInt64(0), spare);
  return spare;
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
    llvm::Value* zero = spare_memory(zero_, true);
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

Status Lowering::lower_store(const ir::Op& op) {
  const auto& m = op.as<ir::MemoryAttributes>();
  const ir::Type& t = op.operands[1]->type;
  llvm::Value* x = to_memory(b_, convert(b_, value(op.operands[1]), t.dtype, m.storage), m.storage);
  const llvm::Align align(static_cast<uint64_t>(std::max(m.align, 1)));
  if (op.operands.size() > 2 && t.lanes > 1) {
    b_.CreateMaskedStore(x, address(op), align, value(op.operands[2]));
    return {};
  }
  llvm::Value* target = address(op);
  if (op.operands.size() > 2) {
    target = b_.CreateSelect(value(op.operands[2]), target, spare_memory(ignored_, false));
    b_.CreateAlignedStore(x, target, llvm::Align(1));
    return {};
  }
  auto* store = b_.CreateAlignedStore(x, target, align);
  if (m.streaming)
    store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                       llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  return {};
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

Status Lowering::lower_scatter(const ir::Op& op) {
  const auto& m = op.as<ir::MemoryAttributes>();
  const ir::Type& t = op.operands[2]->type;
  llvm::Value* x = to_memory(b_, convert(b_, value(op.operands[2]), t.dtype, m.storage), m.storage);
  llvm::Value* pointers = b_.CreateGEP(b_.getInt8Ty(), address(op), value(op.operands[1]));
  llvm::Value* mask = op.operands.size() > 3
                          ? value(op.operands[3])
                          : llvm::Constant::getAllOnesValue(register_type(b_.getContext(), DType::Bool, t.lanes));
  b_.CreateMaskedScatter(x, pointers, llvm::Align(static_cast<uint64_t>(std::max(m.align, 1))), mask);
  return {};
}

Status Lowering::lower_prefetch(const ir::Op& op) {
  // Locality 3: every level; 2: from the second level on.
  const uint32_t locality = op.as<ir::MemoryAttributes>().streaming ? 2 : 3;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {address(op), b_.getInt32(0), b_.getInt32(locality), b_.getInt32(1)});
  return {};
}

llvm::Value* Lowering::lower_atomic(const ir::Op& op) {
  const auto& attributes = op.as<ir::AtomicMemoryAttributes>();
  if (!is_int(attributes.storage) || attributes.storage != op.operands[1]->type.dtype) return compare_and_swap(op);
  using RMW = llvm::AtomicRMWInst;
  const bool is_signed = is_signed_int(attributes.storage);
  RMW::BinOp rmw = RMW::Add;
  switch (attributes.kind) {
    case ir::AtomicKind::Add: rmw = RMW::Add; break;
    case ir::AtomicKind::Max: rmw = is_signed ? RMW::Max : RMW::UMax; break;
    case ir::AtomicKind::Min: rmw = is_signed ? RMW::Min : RMW::UMin; break;
    case ir::AtomicKind::Or: rmw = RMW::Or; break;
  }
  return b_.CreateAtomicRMW(rmw, value(op.operands[0]), value(op.operands[1]), llvm::MaybeAlign(),
                            llvm::AtomicOrdering::Monotonic);
}

/// A loop on the storage bits: works for every dtype and kind with the language's own arithmetic.
llvm::Value* Lowering::compare_and_swap(const ir::Op& op) {
  const auto& attributes = op.as<ir::AtomicMemoryAttributes>();
  const DType storage = attributes.storage;
  const DType compute = op.operands[1]->type.dtype;
  llvm::Value* pointer = value(op.operands[0]);
  llvm::Value* operand = value(op.operands[1]);
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
  llvm::Value* joined = join(kJoin[static_cast<size_t>(attributes.kind)], compute, old, operand);
  llvm::Value* wanted = b_.CreateBitCast(to_memory(b_, convert(b_, joined, compute, storage), storage), bits_type);
  auto* exchange = b_.CreateAtomicCmpXchg(pointer, seen, wanted, llvm::MaybeAlign(), llvm::AtomicOrdering::Monotonic,
                                          llvm::AtomicOrdering::Monotonic);
  seen->addIncoming(first, before), seen->addIncoming(b_.CreateExtractValue(exchange, 0), b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateExtractValue(exchange, 1), done, loop);
  b_.SetInsertPoint(done);
  return old;
}

}  // namespace tilewright::codegen
