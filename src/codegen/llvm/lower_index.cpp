// Index expressions: each is computed once, in the outermost scope that knows its symbols.
#include "codegen/llvm/lower.h"

namespace tilewright::codegen {
namespace {

using ir::IndexOp;

bool is_hoistable_symbol(const ir::Value* v) { return v->def == nullptr || v->def->kind == ir::OpKind::Slot; }

/// A term `factor · x` with a negative constant factor; nothing when the node is none.
struct NegativeTerm {
  const ir::IndexNode* factor = nullptr;
  int64_t count = 0;  ///< the factor's magnitude
};
NegativeTerm negative_term(const ir::IndexNode* n) {
  if (n->op != IndexOp::Mul) return {};
  const bool first = n->a->op == IndexOp::Const;
  const ir::IndexNode* constant = first ? n->a : n->b;
  if (constant->op != IndexOp::Const || constant->value >= 0 || constant->value == INT64_MIN) return {};
  return {first ? n->b : n->a, -constant->value};
}

/// Sizes below this cannot make a sum or product of extents wrap.
constexpr int64_t kSmall = int64_t{1} << 31;

bool is_small(const ir::IndexNode* n) { return n->op == IndexOp::Const && n->value >= 0 && n->value < kSmall; }

}  // namespace

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

llvm::Value* Lowering::in_outermost_scope(const ir::IndexNode* n, Cache cache) {
  const auto emit = [&] { return cache == &Scope::truths ? emit_truth(n) : emit_index(n); };
  const int home = scope_of(n);
  if (home < 0) return emit();
  auto& known = scopes_[static_cast<size_t>(home)].*cache;
  if (const auto found = known.find(n); found != known.end()) return found->second;
  const llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(scopes_[static_cast<size_t>(home)].marker);
  llvm::Value* lowered = emit();
  (scopes_[static_cast<size_t>(home)].*cache).emplace(n, lowered);
  scope_of_index_[n] = home;
  return lowered;
}

llvm::Value* Lowering::index(ir::Index x) {
  const ir::IndexNode* n = x.node();
  if (n->op == IndexOp::Const) return b_.getInt64(static_cast<uint64_t>(n->value));
  if (n->op == IndexOp::Symbol) return value(n->symbol);
  return in_outermost_scope(n, &Scope::indices);
}

llvm::Value* Lowering::truth(ir::Index x) { return in_outermost_scope(x.node(), &Scope::truths); }

llvm::Value* Lowering::emit_truth(const ir::IndexNode* n) {
  const auto operand = [&](const ir::IndexNode* child) { return index(ir::Index(child)); };
  const auto bit = [&](const ir::IndexNode* child) { return truth(ir::Index(child)); };
  switch (n->op) {
    case IndexOp::Lt: return b_.CreateICmpSLT(operand(n->a), operand(n->b));
    case IndexOp::Le: return b_.CreateICmpSLE(operand(n->a), operand(n->b));
    case IndexOp::Eq: return b_.CreateICmpEQ(operand(n->a), operand(n->b));
    case IndexOp::Ne: return b_.CreateICmpNE(operand(n->a), operand(n->b));
    case IndexOp::And: return b_.CreateAnd(bit(n->a), bit(n->b));
    case IndexOp::Or: return b_.CreateOr(bit(n->a), bit(n->b));
    case IndexOp::Not: return b_.CreateNot(bit(n->a));
    case IndexOp::Const: return b_.getInt1(n->value != 0);
    case IndexOp::Symbol:
    case IndexOp::Add:
    case IndexOp::Mul:
    case IndexOp::FloorDiv:
    case IndexOp::FloorMod:
    case IndexOp::Min:
    case IndexOp::Max:
    case IndexOp::Select: break;
  }
  return b_.CreateICmpNE(operand(n), b_.getInt64(0));
}

llvm::Value* Lowering::emit_index(const ir::IndexNode* n) {
  const auto operand = [&](const ir::IndexNode* child) { return index(ir::Index(child)); };
  switch (n->op) {
    case IndexOp::Const:
    case IndexOp::Symbol: return index(ir::Index(n));
    case IndexOp::Add: return emit_sum(n);
    case IndexOp::Mul:
      if (n->b->op == IndexOp::Const) return emit_product(operand(n->a), n->b->value);
      if (n->a->op == IndexOp::Const) return emit_product(operand(n->b), n->a->value);
      return b_.CreateMul(operand(n->a), operand(n->b));
    case IndexOp::FloorDiv:
    case IndexOp::FloorMod: return emit_division(n);
    case IndexOp::Min: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, operand(n->a), operand(n->b));
    case IndexOp::Max: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, operand(n->a), operand(n->b));
    case IndexOp::Select: return b_.CreateSelect(truth(ir::Index(n->a)), operand(n->b), operand(n->c));
    case IndexOp::Lt:
    case IndexOp::Le:
    case IndexOp::Eq:
    case IndexOp::Ne:
    case IndexOp::And:
    case IndexOp::Or:
    case IndexOp::Not: return b_.CreateZExt(truth(ir::Index(n)), b_.getInt64Ty());
  }
  return nullptr;
}

/// x − c·t as one subtraction: instruction selection need not find it.
llvm::Value* Lowering::emit_sum(const ir::IndexNode* n) {
  const auto operand = [&](const ir::IndexNode* child) { return index(ir::Index(child)); };
  if (const NegativeTerm term = negative_term(n->b); term.factor)
    return b_.CreateSub(operand(n->a), emit_product(operand(term.factor), term.count));
  if (const NegativeTerm term = negative_term(n->a); term.factor)
    return b_.CreateSub(operand(n->b), emit_product(operand(term.factor), term.count));
  return b_.CreateAdd(operand(n->a), operand(n->b));
}

llvm::Value* Lowering::emit_product(llvm::Value* x, int64_t factor) {
  if (factor == 1) return x;
  if (factor == -1) return b_.CreateNeg(x);
  const auto bits = static_cast<uint64_t>(factor);
  if (factor > 0 && (bits & (bits - 1)) == 0) return b_.CreateShl(x, static_cast<uint64_t>(__builtin_ctzll(bits)));
  return b_.CreateMul(x, b_.getInt64(bits));
}

llvm::Value* Lowering::emit_division(const ir::IndexNode* n) {
  const bool quotient = n->op == IndexOp::FloorDiv;
  llvm::Value* x = index(ir::Index(n->a));
  llvm::Value* y = index(ir::Index(n->b));
  const bool is_signed = n->b->op != IndexOp::Const || n->b->value <= 0 || !is_not_negative(n->a);
  return divide(quotient ? ir::BinaryOp::FloorDiv : ir::BinaryOp::FloorMod, is_signed, x, y);
}

/// Proven by the expression's form alone; false when it does not show.
bool Lowering::is_not_negative(const ir::IndexNode* n) const {
  switch (n->op) {
    case IndexOp::Const: return n->value >= 0;
    case IndexOp::Symbol: return not_negative_.contains(n->symbol);
    case IndexOp::Add: {
      const NegativeTerm term = negative_term(n->b);
      const bool below_limit = term.factor && term.count == 1 && term.factor->op == IndexOp::Symbol;
      if (below_limit) {
        const auto limit = limit_of_.find(term.factor->symbol);
        return limit != limit_of_.end() && limit->second == n->a;
      }
      return is_not_negative(n->a) && is_not_negative(n->b) && (is_small(n->a) || is_small(n->b));
    }
    case IndexOp::Mul: return is_not_negative(n->a) && is_not_negative(n->b) && (is_small(n->a) || is_small(n->b));
    case IndexOp::FloorDiv: return is_not_negative(n->a) && is_small(n->b);
    case IndexOp::FloorMod: return is_small(n->b);
    case IndexOp::Min: return is_not_negative(n->a) && is_not_negative(n->b);
    case IndexOp::Max: return is_not_negative(n->a) || is_not_negative(n->b);
    case IndexOp::Select: return is_not_negative(n->b) && is_not_negative(n->c);
    case IndexOp::Lt:
    case IndexOp::Le:
    case IndexOp::Eq:
    case IndexOp::Ne:
    case IndexOp::And:
    case IndexOp::Or:
    case IndexOp::Not: return true;
  }
  return false;
}

}  // namespace tilewright::codegen
