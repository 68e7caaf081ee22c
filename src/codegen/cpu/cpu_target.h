// The CPU's share of the lowering: slots, arguments and scratch by the entry ABI of tilewright.h, assertions and
// prints.
#pragma once

#include "codegen/llvm/lower.h"

namespace tilewright::codegen {

/// int32 k(const tw_launch*, int64 first, int64 last, void* scratch); fields of tw_launch by position.
class CpuTarget final : public Target {
 public:
  explicit CpuTarget(llvm::Function* function)
      : function_(function), launch_(function->getArg(0)), scratch_(function->getArg(3)) {}

  /// Loads what every block needs; the builder stands in the entry block.
  void begin(llvm::IRBuilder<>& builder);
  void set_block(llvm::Value* block, llvm::BasicBlock* next_block) { block_ = block, next_block_ = next_block; }

  llvm::Value* slot(llvm::IRBuilder<>& builder, int number) override;
  llvm::Value* argument(llvm::IRBuilder<>& builder, int number) override;
  llvm::Value* scratch(llvm::IRBuilder<>&) override { return scratch_; }
  void end_block(llvm::IRBuilder<>& builder) override;
  void assert_failed(llvm::IRBuilder<>& builder, int text_id) override;
  void print(llvm::IRBuilder<>& builder, int text_id, const std::vector<llvm::Value*>& values,
             const std::vector<DType>& dtypes) override;
  bool lower(const ir::Op&) override { return false; }

 private:
  llvm::Value* field(llvm::IRBuilder<>& builder, unsigned number);

  llvm::Function* function_;
  llvm::Value* launch_;
  llvm::Value* scratch_;
  llvm::Value* slots_ = nullptr;
  llvm::Value* pointers_ = nullptr;
  llvm::Value* block_ = nullptr;
  llvm::BasicBlock* next_block_ = nullptr;
};

}  // namespace tilewright::codegen
