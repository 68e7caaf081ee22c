// Low-level IR (vector and thread phases) to LLVM IR: the part both backends share.
//
// Guarantees: one LLVM instruction sequence per operation, in order; index expressions are computed once, in the
// outermost region where their symbols are known (so no loop-invariant code motion is needed later); no fast-math flag
// is set, except that lane reductions may reassociate. Does not do: launch ABI, block loops, target instructions (a
// Target gives those).
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tilewright::codegen {

/// What a backend adds to the shared lowering. All values are LLVM values at the builder's position.
class Target {
 public:
  virtual ~Target() = default;
  /// Value of a kernel-level i64 (slot) and base pointer of argument n: emitted at function entry.
  virtual llvm::Value* slot(llvm::IRBuilder<>& at_entry, int number) = 0;
  virtual llvm::Value* argument(llvm::IRBuilder<>& at_entry, int number) = 0;
  virtual llvm::Value* scratch(llvm::IRBuilder<>& at_entry) = 0;
  /// Ends the block after an assertion or `return`.
  virtual void end_block(llvm::IRBuilder<>& builder) = 0;
  virtual void assert_failed(llvm::IRBuilder<>& builder, int text_id) = 0;
  virtual void print(llvm::IRBuilder<>& builder, int text_id, const std::vector<llvm::Value*>& values,
                     const std::vector<DType>& dtypes) = 0;
  /// An operation of the target's own; false when it is not one.
  virtual bool lower(const ir::Op& op) = 0;
};

/// Lowers the body of one Func into the function the builder stands in.
class Lowering {
 public:
  Lowering(const ir::Kernel& kernel, llvm::IRBuilder<>& builder, Target& target);

  /// Binds a value (block index, region argument) before lowering starts.
  void bind(const ir::Value* value, llvm::Value* lowered);
  Status lower_region(const ir::Region& region);

  llvm::Value* value(const ir::Value* value);
  llvm::Value* index(ir::Index index);
  llvm::Type* type(const ir::Type& type);
  llvm::IRBuilder<>& builder() { return b_; }
  /// Opens and closes the scope in which values bound meanwhile live (one per region).
  void open_scope();
  void close_scope();
  /// Moves the place for hoisted index arithmetic to the builder's position (after the values it may use).
  void restart_scope();

 private:
  struct Scope {
    llvm::Instruction* marker;  ///< hoisted index arithmetic goes before it
    std::vector<const ir::Value*> bound;
    std::unordered_map<const ir::IndexNode*, llvm::Value*> indices;
  };

  Status lower_op(const ir::Op& op);
  Status lower_for(const ir::Op& op);
  Status lower_if(const ir::Op& op);
  Status lower_while(const ir::Op& op);
  llvm::Value* lower_unary(const ir::Op& op);
  llvm::Value* lower_binary(ir::BinaryOp op, DType dtype, llvm::Value* x, llvm::Value* y);
  llvm::Value* lower_compare(ir::CompareOp op, DType dtype, llvm::Value* x, llvm::Value* y);
  llvm::Value* lower_constant(const ir::Op& op);
  llvm::Value* lower_load(const ir::Op& op);
  void lower_store(const ir::Op& op);
  void store_streaming(llvm::Value* x, llvm::Value* target, llvm::Align align);
  llvm::Value* lower_gather(const ir::Op& op);
  void lower_scatter(const ir::Op& op);
  llvm::Value* lower_lanes_reduction(ir::ReduceKind kind, DType dtype, llvm::Value* x);
  llvm::Value* lower_atomic(const ir::Op& op);
  llvm::Value* lower_mask(const ir::Op& op);
  void lower_assert(const ir::Op& op);

  llvm::Value* address(const ir::Op& op);
  llvm::Value* integer_division(ir::BinaryOp op, bool is_signed, llvm::Value* x, llvm::Value* y);
  llvm::Value* emit_index(const ir::IndexNode* node);
  int scope_of(const ir::IndexNode* node);
  void mark_debug_location(const ir::Op& op);

  const ir::Kernel& kernel_;
  llvm::IRBuilder<>& b_;
  Target& target_;
  std::unordered_map<const ir::Value*, llvm::Value*> values_;
  std::unordered_map<const ir::Value*, int> scope_of_value_;
  std::unordered_map<const ir::IndexNode*, int> scope_of_index_;
  std::vector<Scope> scopes_;
  std::unordered_map<int, llvm::Value*> slots_;
  std::unordered_map<int, llvm::Value*> arguments_;
  std::vector<llvm::Value*> yielded_;
};

}  // namespace tilewright::codegen
