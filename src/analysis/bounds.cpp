#include "analysis/bounds.h"

#include <algorithm>

namespace tilewright::analysis {
namespace {

using ir::Index;
using ir::IndexOp;

constexpr int64_t kLarge = int64_t{1} << 40;
constexpr int kManyDeclarations = 1 << 20;  ///< more than there are: constant sides come after all others

std::optional<int64_t> multiply(int64_t x, int64_t y) {
  int64_t product = 0;
  if (__builtin_mul_overflow(x, y, &product)) return std::nullopt;
  return product;
}

Index constant(Index like, int64_t v) { return like.node()->context->constant(v); }

}  // namespace

void Bounds::declare(const ir::Value* symbol, Index lo, Index hi) { ranges_[symbol] = {lo, hi, declarations_++}; }

bool Bounds::always_holds(Index c) const {
  if (const auto v = c.constant()) return *v != 0;
  const Index a(c.node()->a), b(c.node()->b);
  switch (c.op()) {
    case IndexOp::Lt: return is_never_negative(b - a - 1);
    case IndexOp::Le: return is_never_negative(b - a);
    case IndexOp::And: return always_holds(a) && always_holds(b);
    case IndexOp::Or: return always_holds(a) || always_holds(b);
    case IndexOp::Ne: return is_never_negative(b - a - 1) || is_never_negative(a - b - 1);
    default: return false;
  }
}

std::optional<int64_t> Bounds::bound(Index x, bool upper, int depth) const {
  if (depth == 0) return std::nullopt;
  const ir::LinearForm form = linear_form(x);
  int64_t total = form.constant;
  for (const auto& term : form.terms) {
    const auto b = bound_factor(term.factor, upper == (term.coefficient > 0), depth - 1);
    if (!b) return std::nullopt;
    const auto product = multiply(*b, term.coefficient);
    if (!product || __builtin_add_overflow(total, *product, &total)) return std::nullopt;
  }
  return total;
}

std::optional<int64_t> Bounds::bound_factor(Index x, bool upper, int depth) const {
  const Index a(x.node()->a), b(x.node()->b), c(x.node()->c);
  if (is_boolean(x)) return upper ? 1 : 0;
  switch (x.op()) {
    case IndexOp::Symbol: {
      const auto found = ranges_.find(x.symbol());
      if (found == ranges_.end()) return std::nullopt;
      const Index side = upper ? found->second.hi : found->second.lo;
      return side ? bound(side, upper, depth) : std::nullopt;
    }
    case IndexOp::FloorDiv: {
      const auto divisor = b.constant();
      const auto numerator = bound(a, upper, depth);
      if (!divisor || *divisor <= 0 || !numerator) return std::nullopt;
      return ir::floor_div(*numerator, *divisor);
    }
    case IndexOp::FloorMod: {
      const auto divisor = b.constant();
      if (!divisor || *divisor <= 0) return std::nullopt;
      return upper ? *divisor - 1 : 0;
    }
    case IndexOp::Min:
    case IndexOp::Max: {
      const auto p = bound(a, upper, depth), q = bound(b, upper, depth);
      const bool is_min = x.op() == IndexOp::Min;
      if (p && q) return is_min ? std::min(*p, *q) : std::max(*p, *q);
      return is_min == upper ? (p ? p : q) : std::nullopt;
    }
    case IndexOp::Select: {
      const auto p = bound(b, upper, depth), q = bound(c, upper, depth);
      if (!p || !q) return std::nullopt;
      return upper ? std::max(*p, *q) : std::min(*p, *q);
    }
    case IndexOp::Mul: {
      const auto p = bound(a, false, depth), q = bound(b, false, depth);
      if (!p || !q || *p < 0 || *q < 0) return std::nullopt;
      if (!upper) return multiply(*p, *q);
      const auto r = bound(a, true, depth), s = bound(b, true, depth);
      return r && s ? multiply(*r, *s) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

/// Shows x >= 0 by replacing one term with something that is never larger.
bool Bounds::prove_by_term(Index x, const ir::LinearForm::Term& term, int depth) const {
  const int64_t k = term.coefficient;
  const Index t = term.factor;
  const Index rest = x - t * k;
  const Index a(t.node()->a), b(t.node()->b), c(t.node()->c);
  switch (t.op()) {
    case IndexOp::Symbol: {
      const auto found = ranges_.find(t.symbol());
      if (found == ranges_.end()) return false;
      const Index side = k > 0 ? found->second.lo : found->second.hi;
      return side && prove(rest + side * k, depth - 1);
    }
    case IndexOp::FloorDiv: {
      const auto d = b.constant();
      if (!d) return prove_by_quotient(rest, k, t, depth);
      if (*d <= 0 || k % *d != 0) return false;
      const Index smaller = k > 0 ? a - (*d - 1) : a;
      return prove(rest + smaller * (k / *d), depth - 1);
    }
    case IndexOp::FloorMod: {
      const auto d = b.constant();
      return d && *d > 0 && prove(rest + constant(x, k > 0 ? 0 : (*d - 1) * k), depth - 1);
    }
    case IndexOp::Min:
    case IndexOp::Max: {
      const bool any = (t.op() == IndexOp::Min) == (k < 0);
      const bool p = prove(rest + a * k, depth - 1);
      if (p == any) return p;
      return prove(rest + b * k, depth - 1);
    }
    case IndexOp::Select: return prove(rest + b * k, depth - 1) && prove(rest + c * k, depth - 1);
    default: return false;
  }
}

/// Shows rest + k·(a // (dividend // divisor)) >= 0 from 0 <= a < dividend.
bool Bounds::prove_by_quotient(Index rest, int64_t k, Index quotient, int depth) const {
  const Index a(quotient.node()->a), group(quotient.node()->b);
  if (group.op() != IndexOp::FloorDiv) return false;
  for (const auto& [divisor, dividend] : divides_) {
    if (Index(group.node()->a) != dividend || Index(group.node()->b) != divisor) continue;
    if (!prove(a, depth - 1) || !prove(dividend - 1 - a, depth - 1)) return false;
    return prove(k > 0 ? rest : rest + (divisor - 1) * k, depth - 1);
  }
  return false;
}

bool Bounds::prove(Index x, int depth) const {
  if (const auto v = x.constant()) return *v >= 0;
  if (depth == 0) return false;
  if (const auto low = bound(x, false, depth); low && *low >= 0) return true;
  const ir::LinearForm form = linear_form(x);
  // Innermost facts first: the youngest symbol's range mentions the older ones.
  const ir::LinearForm::Term* youngest = nullptr;
  int age = -1;
  for (const auto& term : form.terms) {
    if (!term.factor.symbol() || !ranges_.contains(term.factor.symbol())) continue;
    const auto& range = ranges_.at(term.factor.symbol());
    const Index side = term.coefficient > 0 ? range.lo : range.hi;
    if (!side || (side.constant() && *side.constant() >= kLarge)) continue;
    const int rank = side.constant() ? range.age - kManyDeclarations : range.age;
    if (!youngest || rank > age) youngest = &term, age = rank;
  }
  for (const auto& term : form.terms) {
    if (!term.factor.symbol() && prove_by_term(x, term, std::min(depth, 6))) return true;
  }
  return youngest && prove_by_term(x, *youngest, depth);
}

}  // namespace tilewright::analysis
