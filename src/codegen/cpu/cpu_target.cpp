#include "codegen/cpu/cpu_target.h"

#include "codegen/llvm/convert.h"

namespace tilewright::codegen {
namespace {

llvm::Value* load_invariant(llvm::IRBuilder<>& b, llvm::Type* type, llvm::Value* pointer) {
  auto* load = b.CreateLoad(type, pointer);
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
  return load;
}

}  // namespace

llvm::Value* CpuTarget::field(llvm::IRBuilder<>& b, unsigned number) {
  return b.CreateConstGEP1_64(b.getPtrTy(), launch_, number);
}

void CpuTarget::begin(llvm::IRBuilder<>& b) {
  slots_ = load_invariant(b, b.getPtrTy(), launch_);
  pointers_ = load_invariant(b, b.getPtrTy(), field(b, 1));
}

llvm::Value* CpuTarget::slot(llvm::IRBuilder<>& b, int number) {
  return load_invariant(b, b.getInt64Ty(), b.CreateConstGEP1_64(b.getInt64Ty(), slots_, static_cast<uint64_t>(number)));
}

llvm::Value* CpuTarget::argument(llvm::IRBuilder<>& b, int number) {
  return load_invariant(b, b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), pointers_, static_cast<uint64_t>(number)));
}

void CpuTarget::end_block(llvm::IRBuilder<>& b) {
  b.CreateBr(next_block_);
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "unreachable", function_));
}

/// Writes {id, no indices, block} into the call's record and returns the id.
// The entry returns 0 when nothing failed, so ids of messages count from 1.
void CpuTarget::assert_failed(llvm::IRBuilder<>& b, int text_id) {
  const llvm::APInt id(32, static_cast<uint64_t>(text_id) + 1);
  llvm::Value* record = b.CreateLoad(b.getPtrTy(), field(b, 2));
  b.CreateStore(b.getInt(id), record);
  b.CreateStore(b.getInt32(0), b.CreateConstGEP1_64(b.getInt8Ty(), record, 4));
  b.CreateStore(block_, b.CreateConstGEP1_64(b.getInt8Ty(), record, 8));
  b.CreateRet(b.getInt(id));
  b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "after.assert", function_));
}

void CpuTarget::print(llvm::IRBuilder<>& b, int text_id, const std::vector<llvm::Value*>& values,
                      const std::vector<DType>& dtypes) {
  llvm::BasicBlock& entry_block = function_->getEntryBlock();
  llvm::IRBuilder<> entry(&entry_block, entry_block.begin());
  const auto count = static_cast<uint32_t>(values.size());
  llvm::Value* buffer = entry.CreateAlloca(entry.getInt64Ty(), entry.getInt32(std::max(count, 1u)));
  for (uint32_t i = 0; i < count; ++i) {
    llvm::Value* x = is_float(dtypes[i]) ? b.CreateBitCast(convert(b, values[i], dtypes[i], DType::F64), b.getInt64Ty())
                                         : convert(b, values[i], dtypes[i], DType::I64);
    b.CreateStore(x, b.CreateConstGEP1_64(b.getInt64Ty(), buffer, i));
  }
  auto* type =
      llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty(), b.getPtrTy(), b.getInt32Ty()}, false);
  llvm::Value* callee = b.CreateLoad(b.getPtrTy(), field(b, 3));
  b.CreateCall(type, callee, {launch_, b.getInt32(static_cast<uint32_t>(text_id) + 1), buffer, b.getInt32(count)});
}

}  // namespace tilewright::codegen
