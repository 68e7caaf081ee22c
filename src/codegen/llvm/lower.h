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
#include <unordered_set>
#include <vector>

#include "base/plant.h"
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
  Lowering(const ir::Kernel& kernel, llvm::IRBuilder<>& builder, Target& target, const Plant& plant = {});

  /// Binds a value (block index, region argument) before lowering starts.
  void bind(const ir::Value* value, llvm::Value* lowered);
  /// Says that a value is never negative, so that divisions of it need no correction.
  void assume_not_negative(const ir::Value* value) { not_negative_.insert(value); }
  Status lower_region(const ir::Region& region);

  llvm::Value* value(const ir::Value* value);
  llvm::Value* index(ir::Index index);
  /// The same as one bit: not zero.
  llvm::Value* truth(ir::Index index);
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
    std::unordered_map<const ir::IndexNode*, llvm::Value*> truths;  ///< as one bit
  };
  using Cache = std::unordered_map<const ir::IndexNode*, llvm::Value*> Scope::*;

  Status lower_op(const ir::Op& op);
  Status give(const ir::Op& op, llvm::Value* lowered);

  Status lower_for(const ir::Op& op);
  Status lower_if(const ir::Op& op);
  Status lower_while(const ir::Op& op);
  Status lower_side(const ir::Region& region, std::vector<llvm::Value*>& results);
  Status lower_yield(const ir::Op& op);
  Status lower_assert(const ir::Op& op);
  Status lower_print(const ir::Op& op);

  Status lower_slot(const ir::Op& op);
  llvm::Value* lower_argument(const ir::Op& op);
  llvm::Value* lower_index_value(const ir::Op& op);
  llvm::Value* lower_constant(const ir::Op& op);
  llvm::Value* lower_iota(const ir::Op& op);
  llvm::Value* lower_unary(const ir::Op& op);
  llvm::Value* lower_binary(const ir::Op& op);
  llvm::Value* lower_compare(const ir::Op& op);
  llvm::Value* lower_select(const ir::Op& op);
  llvm::Value* lower_cast(const ir::Op& op);
  llvm::Value* lower_fma(const ir::Op& op);
  llvm::Value* lower_broadcast(const ir::Op& op);
  llvm::Value* lower_extract(const ir::Op& op);
  llvm::Value* lower_shuffle(const ir::Op& op);
  llvm::Value* lower_reduce_lanes(const ir::Op& op);
  llvm::Value* lower_mask(const ir::Op& op);

  llvm::Value* lower_offset(const ir::Op& op, llvm::Value* base);
  llvm::Value* lower_load(const ir::Op& op);
  Status lower_store(const ir::Op& op);
  llvm::Value* lower_gather(const ir::Op& op);
  Status lower_scatter(const ir::Op& op);
  Status lower_prefetch(const ir::Op& op);
  llvm::Value* lower_atomic(const ir::Op& op);

  llvm::Value* join(ir::BinaryOp op, DType dtype, llvm::Value* x, llvm::Value* y);
  llvm::Value* reduce_lanes(ir::ReduceKind kind, DType dtype, llvm::Value* x);
  llvm::Value* divide(ir::BinaryOp op, bool is_signed, llvm::Value* x, llvm::Value* y);
  llvm::Value* divide_floor(ir::BinaryOp op, llvm::Value* x, llvm::Value* y);
  llvm::Value* divide_by_constant(bool quotient, llvm::Value* x, const llvm::ConstantInt* y);
  llvm::Value* address(const ir::Op& op);
  llvm::Value* offset(llvm::Value* base, ir::Index bytes);
  llvm::Value* compare_and_swap(const ir::Op& op);
  llvm::AllocaInst* spare_memory(llvm::AllocaInst*& spare, bool is_zero);

  llvm::Value* in_outermost_scope(const ir::IndexNode* node, Cache cache);
  llvm::Value* emit_index(const ir::IndexNode* node);
  llvm::Value* emit_truth(const ir::IndexNode* node);
  llvm::Value* emit_sum(const ir::IndexNode* node);
  llvm::Value* emit_product(llvm::Value* x, int64_t factor);
  llvm::Value* emit_division(const ir::IndexNode* node);
  bool is_not_negative(const ir::IndexNode* node) const;
  int scope_of(const ir::IndexNode* node);
  void mark_debug_location(const ir::Op& op);

  const ir::Kernel& kernel_;
  llvm::IRBuilder<>& b_;
  Target& target_;
  Plant plant_;
  std::unordered_map<const ir::Value*, llvm::Value*> values_;
  std::unordered_set<const ir::Value*> not_negative_;
  std::unordered_map<const ir::Value*, const ir::IndexNode*> limit_of_;  ///< of loop variables: each is below its limit
  std::unordered_map<const ir::Value*, int> scope_of_value_;
  std::unordered_map<const ir::IndexNode*, int> scope_of_index_;
  std::vector<Scope> scopes_;
  std::unordered_map<int, llvm::Value*> slots_;
  std::unordered_map<int, llvm::Value*> arguments_;
  std::vector<llvm::Value*> yielded_;
  llvm::AllocaInst* zero_ = nullptr;     ///< what a masked-off scalar load reads
  llvm::AllocaInst* ignored_ = nullptr;  ///< where a masked-off scalar store goes
};

}  // namespace tilewright::codegen
