// Index expressions: pure i64 arithmetic over symbols (dimensions, loop variables, block-uniform or loaded scalars).
//
// Guarantees: expressions are interned in an IndexContext and canonical, so equal expressions built in one context are
// the same node; sums are kept as sorted linear forms (c0 + c1·t1 + …). They carry no location and have no side effect.
// Comparisons and `and`/`or`/`not` give 0 or 1. Division by zero gives 0. Arithmetic wraps at 64 bits.
// Does not do: range reasoning (analysis/ranges.h) or evaluation with error bounds (interp/).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tilewright::ir {

struct Value;
class IndexContext;

enum class IndexOp : uint8_t {
  Const,
  Symbol,
  Add,
  Mul,
  FloorDiv,
  FloorMod,
  Min,
  Max,
  Select,
  Lt,
  Le,
  Eq,
  Ne,
  And,
  Or,
  Not
};

/// One interned node. `a`, `b`, `c` are operands by position (Select: a ? b : c).
struct IndexNode {
  IndexOp op;
  int64_t value = 0;              ///< Const
  const Value* symbol = nullptr;  ///< Symbol: an i64 SSA value
  const IndexNode* a = nullptr;
  const IndexNode* b = nullptr;
  const IndexNode* c = nullptr;
  IndexContext* context = nullptr;
};

/// A handle to a node; cheap to copy. A default-constructed Index is empty and may only be tested.
class Index {
 public:
  Index() = default;
  explicit Index(const IndexNode* node) : node_(node) {}
  const IndexNode* node() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }
  IndexOp op() const { return node_->op; }
  std::optional<int64_t> constant() const {
    if (node_ && node_->op == IndexOp::Const) return node_->value;
    return std::nullopt;
  }
  bool is_constant(int64_t v) const { return constant() == v; }
  const Value* symbol() const { return node_->op == IndexOp::Symbol ? node_->symbol : nullptr; }
  friend bool operator==(Index x, Index y) { return x.node_ == y.node_; }

 private:
  const IndexNode* node_ = nullptr;
};

Index operator+(Index x, Index y);
Index operator+(Index x, int64_t y);
Index operator-(Index x, Index y);
Index operator-(Index x, int64_t y);
Index operator*(Index x, Index y);
Index operator*(Index x, int64_t y);
Index operator/(Index, Index) = delete;  // say floordiv
Index floordiv(Index x, Index y);
Index floordiv(Index x, int64_t y);
Index floormod(Index x, Index y);
Index floormod(Index x, int64_t y);
Index ceildiv(Index x, Index y);
Index ceildiv(Index x, int64_t y);
Index min(Index x, Index y);
Index max(Index x, Index y);
Index select(Index condition, Index yes, Index no);
Index less(Index x, Index y);
Index less_equal(Index x, Index y);
Index equal(Index x, Index y);
Index not_equal(Index x, Index y);
Index logical_and(Index x, Index y);
Index logical_or(Index x, Index y);
Index logical_not(Index x);

/// True for expressions whose value is always 0 or 1 (comparisons and logic).
bool is_boolean(Index x);

/// The sum c0 + Σ coefficient·term with terms in canonical order; no term is a Const or an Add.
struct LinearForm {
  int64_t constant = 0;
  struct Term {
    Index factor;
    int64_t coefficient;
  };
  std::vector<Term> terms;
};
LinearForm linear_form(Index x);

/// Replaces symbols: `map` returns the replacement, or an empty Index to keep the symbol. The result is interned in
/// `into`.
Index substitute(Index x, const std::function<Index(const Value*)>& map, IndexContext& into);

/// Calls `visit` once for each distinct symbol of x, in canonical order of first appearance.
void for_each_symbol(Index x, const std::function<void(const Value*)>& visit);
bool uses_symbol(Index x, const Value* symbol);

/// Evaluates with `value_of` giving each symbol's value (the definition every other evaluator is tested against).
int64_t evaluate(Index x, const std::function<int64_t(const Value*)>& value_of);

/// i64 arithmetic as the language defines it: wraps, division by zero gives 0, floor semantics.
int64_t wrapping_add(int64_t x, int64_t y);
int64_t wrapping_mul(int64_t x, int64_t y);
int64_t floor_div(int64_t x, int64_t y);
int64_t floor_mod(int64_t x, int64_t y);

/// Infix text; `name_of` gives a symbol's spelling.
std::string to_string(Index x, const std::function<std::string(const Value*)>& name_of);

/// Owns and interns nodes. Not thread-safe; one per kernel.
class IndexContext {
 public:
  IndexContext() = default;
  IndexContext(const IndexContext&) = delete;
  IndexContext& operator=(const IndexContext&) = delete;

  Index constant(int64_t v);
  Index symbol(const Value* v);
  /// Interns without simplifying: operands must already be canonical. Use the free functions above instead.
  Index intern(IndexOp op, Index a, Index b = {}, Index c = {});

 private:
  struct Hash {
    size_t operator()(const IndexNode* n) const;
  };
  struct Same {
    bool operator()(const IndexNode* x, const IndexNode* y) const;
  };
  Index intern_node(IndexNode node);

  std::deque<IndexNode> nodes_;
  std::unordered_map<const IndexNode*, const IndexNode*, Hash, Same> table_;
};

}  // namespace tilewright::ir
