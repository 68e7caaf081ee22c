// Proofs that an index expression is never negative, from what is known of its symbols.
//
// Guarantees: sound (a proof means the inequality holds for every value the symbols may take, as long as nothing
// overflows 63 bits); cheap (bounded depth). Does not do: completeness; facts about loaded values.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/index.h"

namespace tilewright::analysis {

class Bounds {
 public:
  /// `symbol` lies in [lo, hi]; an empty Index means unknown on that side.
  void declare(const ir::Value* symbol, ir::Index lo, ir::Index hi);
  /// `divisor` divides `dividend` (both positive): x // (dividend // divisor) < divisor for 0 <= x < dividend.
  void declare_divides(ir::Index divisor, ir::Index dividend) { divides_.emplace_back(divisor, dividend); }
  void forget(const ir::Value* symbol) { ranges_.erase(symbol); }

  bool is_never_negative(ir::Index x) const { return prove(x, kDepth); }
  bool is_never_less(ir::Index x, ir::Index y) const { return is_never_negative(x - y); }
  /// True when a condition (0 or 1) always holds.
  bool always_holds(ir::Index condition) const;
  /// A constant no larger than x ever is.
  std::optional<int64_t> least(ir::Index x) const { return bound(x, false, kDepth); }
  std::optional<int64_t> greatest(ir::Index x) const { return bound(x, true, kDepth); }

 private:
  struct Range {
    ir::Index lo, hi;
    int age = 0;  ///< number of declarations before it
  };
  static constexpr int kDepth = 12;

  bool prove(ir::Index x, int depth) const;
  bool prove_by_term(ir::Index x, const ir::LinearForm::Term& term, int depth) const;
  std::optional<int64_t> bound(ir::Index x, bool upper, int depth) const;
  std::optional<int64_t> bound_factor(ir::Index x, bool upper, int depth) const;

  bool prove_by_quotient(ir::Index rest, int64_t k, ir::Index quotient, int depth) const;

  std::unordered_map<const ir::Value*, Range> ranges_;
  std::vector<std::pair<ir::Index, ir::Index>> divides_;
  int declarations_ = 0;
};

}  // namespace tilewright::analysis
