#include "ir/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/ir.h"

namespace tilewright::ir {
namespace {

IndexContext& context_of(Index x) { return *x.node()->context; }

/// A total structural order that does not depend on the order in which expressions were built: symbols by value number.
int compare_structure(const IndexNode* x, const IndexNode* y) {
  if (x == y) return 0;
  if (!x || !y) return x ? 1 : -1;
  if (x->op != y->op) return x->op < y->op ? -1 : 1;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  if (x->symbol != y->symbol) return x->symbol->id < y->symbol->id ? -1 : 1;
  if (const int a = compare_structure(x->a, y->a)) return a;
  if (const int b = compare_structure(x->b, y->b)) return b;
  return compare_structure(x->c, y->c);
}

bool precedes(Index x, Index y) { return compare_structure(x.node(), y.node()) < 0; }

void add_term(LinearForm& form, Index factor, int64_t coefficient) {
  for (LinearForm::Term& term : form.terms) {
    if (term.factor == factor) {
      term.coefficient = wrapping_add(term.coefficient, coefficient);
      return;
    }
  }
  form.terms.push_back({factor, coefficient});
}

void accumulate(LinearForm& form, Index x, int64_t scale) {
  switch (x.op()) {
    case IndexOp::Const: form.constant = wrapping_add(form.constant, wrapping_mul(x.node()->value, scale)); return;
    case IndexOp::Add:
      accumulate(form, Index(x.node()->a), scale);
      accumulate(form, Index(x.node()->b), scale);
      return;
    case IndexOp::Mul:
      if (const auto c = Index(x.node()->b).constant()) {
        accumulate(form, Index(x.node()->a), wrapping_mul(scale, *c));
        return;
      }
      break;
    default: break;
  }
  add_term(form, x, scale);
}

Index rebuild(LinearForm form, IndexContext& context) {
  std::erase_if(form.terms, [](const LinearForm::Term& t) { return t.coefficient == 0; });
  std::sort(form.terms.begin(), form.terms.end(),
            [](const auto& x, const auto& y) { return precedes(x.factor, y.factor); });
  Index sum;
  for (const LinearForm::Term& term : form.terms) {
    Index product = term.factor;
    if (term.coefficient != 1) product = context.intern(IndexOp::Mul, term.factor, context.constant(term.coefficient));
    sum = sum ? context.intern(IndexOp::Add, sum, product) : product;
  }
  if (!sum) return context.constant(form.constant);
  return form.constant == 0 ? sum : context.intern(IndexOp::Add, sum, context.constant(form.constant));
}

LinearForm scaled_sum(Index x, int64_t sx, Index y, int64_t sy) {
  LinearForm form;
  accumulate(form, x, sx);
  accumulate(form, y, sy);
  return form;
}

/// Splits x into divisor·quotient + rest, moving every term whose coefficient the divisor divides.
struct Split {
  LinearForm quotient;
  LinearForm rest;
};
Split split_by(Index x, int64_t divisor) {
  Split out;
  const LinearForm form = linear_form(x);
  for (const LinearForm::Term& term : form.terms) {
    if (term.coefficient % divisor == 0) {
      out.quotient.terms.push_back({term.factor, term.coefficient / divisor});
    } else {
      out.rest.terms.push_back(term);
    }
  }
  out.quotient.constant = floor_div(form.constant, divisor);
  out.rest.constant = floor_mod(form.constant, divisor);
  return out;
}

Index compare(IndexOp op, Index x, Index y, bool (*holds)(int64_t, int64_t)) {
  IndexContext& context = context_of(x);
  const LinearForm difference = scaled_sum(x, 1, y, -1);
  Index d = rebuild(difference, context);
  if (const auto c = d.constant()) return context.constant(holds(*c, 0) ? 1 : 0);
  return context.intern(op, x, y);
}

Index commutative(IndexOp op, Index x, Index y) {
  if (precedes(y, x)) std::swap(x, y);
  return context_of(x).intern(op, x, y);
}

const char* infix(IndexOp op) {
  switch (op) {
    case IndexOp::Add: return "+";
    case IndexOp::Mul: return "*";
    case IndexOp::FloorDiv: return "//";
    case IndexOp::FloorMod: return "%";
    case IndexOp::Lt: return "<";
    case IndexOp::Le: return "<=";
    case IndexOp::Eq: return "==";
    case IndexOp::Ne: return "!=";
    case IndexOp::And: return "and";
    case IndexOp::Or: return "or";
    case IndexOp::Const:
    case IndexOp::Symbol:
    case IndexOp::Min:
    case IndexOp::Max:
    case IndexOp::Select:
    case IndexOp::Not: return "";
  }
  return "";
}

}  // namespace

int64_t wrapping_add(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
int64_t wrapping_mul(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}

int64_t floor_div(int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (y == -1) return wrapping_mul(x, -1);
  const int64_t q = x / y;
  return (x % y != 0 && (x < 0) != (y < 0)) ? q - 1 : q;
}

int64_t floor_mod(int64_t x, int64_t y) {
  if (y == 0 || y == -1) return 0;
  const int64_t r = x % y;
  return (r != 0 && (r < 0) != (y < 0)) ? r + y : r;
}

LinearForm linear_form(Index x) {
  LinearForm form;
  accumulate(form, x, 1);
  std::erase_if(form.terms, [](const LinearForm::Term& t) { return t.coefficient == 0; });
  std::sort(form.terms.begin(), form.terms.end(),
            [](const auto& a, const auto& b) { return precedes(a.factor, b.factor); });
  return form;
}

Index operator+(Index x, Index y) { return rebuild(scaled_sum(x, 1, y, 1), context_of(x)); }
Index operator+(Index x, int64_t y) { return x + context_of(x).constant(y); }
Index operator-(Index x, Index y) { return rebuild(scaled_sum(x, 1, y, -1), context_of(x)); }
Index operator-(Index x, int64_t y) { return x + wrapping_mul(y, -1); }

Index operator*(Index x, Index y) {
  if (x.constant()) std::swap(x, y);
  if (const auto c = y.constant()) {
    LinearForm form;
    accumulate(form, x, *c);
    return rebuild(std::move(form), context_of(x));
  }
  // A sum times a symbol stays a product of canonical factors: distributing would lose the shape authors wrote.
  return commutative(IndexOp::Mul, x, y);
}
Index operator*(Index x, int64_t y) { return x * context_of(x).constant(y); }

Index floordiv(Index x, Index y) {
  IndexContext& context = context_of(x);
  const auto cy = y.constant();
  if (!cy) return context.intern(IndexOp::FloorDiv, x, y);
  if (*cy == 0) return context.constant(0);
  if (*cy == 1) return x;
  if (const auto cx = x.constant()) return context.constant(floor_div(*cx, *cy));
  if (*cy < 0) return context.intern(IndexOp::FloorDiv, x, y);
  Split split = split_by(x, *cy);
  Index quotient = rebuild(std::move(split.quotient), context);
  Index rest = rebuild(std::move(split.rest), context);
  if (const auto cr = rest.constant()) return quotient + floor_div(*cr, *cy);
  return quotient + context.intern(IndexOp::FloorDiv, rest, y);
}
Index floordiv(Index x, int64_t y) { return floordiv(x, context_of(x).constant(y)); }

Index floormod(Index x, Index y) {
  IndexContext& context = context_of(x);
  const auto cy = y.constant();
  if (!cy) return context.intern(IndexOp::FloorMod, x, y);
  if (*cy == 0 || *cy == 1 || *cy == -1) return context.constant(0);
  if (const auto cx = x.constant()) return context.constant(floor_mod(*cx, *cy));
  if (*cy < 0) return context.intern(IndexOp::FloorMod, x, y);
  Index rest = rebuild(split_by(x, *cy).rest, context);
  if (const auto cr = rest.constant()) return context.constant(floor_mod(*cr, *cy));
  return context.intern(IndexOp::FloorMod, rest, y);
}
Index floormod(Index x, int64_t y) { return floormod(x, context_of(x).constant(y)); }

Index ceildiv(Index x, Index y) { return floordiv(x + y - 1, y); }
Index ceildiv(Index x, int64_t y) { return floordiv(x + (y - 1), y); }

Index min(Index x, Index y) {
  const auto d = (x - y).constant();
  if (d) return *d <= 0 ? x : y;
  return commutative(IndexOp::Min, x, y);
}
Index max(Index x, Index y) {
  const auto d = (x - y).constant();
  if (d) return *d >= 0 ? x : y;
  return commutative(IndexOp::Max, x, y);
}

Index select(Index condition, Index yes, Index no) {
  if (const auto c = condition.constant()) return *c != 0 ? yes : no;
  if (yes == no) return yes;
  return context_of(condition).intern(IndexOp::Select, condition, yes, no);
}

Index less(Index x, Index y) {
  return compare(IndexOp::Lt, x, y, [](int64_t a, int64_t b) { return a < b; });
}
Index less_equal(Index x, Index y) {
  return compare(IndexOp::Le, x, y, [](int64_t a, int64_t b) { return a <= b; });
}
Index equal(Index x, Index y) {
  if (precedes(y, x)) std::swap(x, y);
  return compare(IndexOp::Eq, x, y, [](int64_t a, int64_t b) { return a == b; });
}
Index not_equal(Index x, Index y) {
  if (precedes(y, x)) std::swap(x, y);
  return compare(IndexOp::Ne, x, y, [](int64_t a, int64_t b) { return a != b; });
}

bool is_boolean(Index x) {
  switch (x.op()) {
    case IndexOp::Lt:
    case IndexOp::Le:
    case IndexOp::Eq:
    case IndexOp::Ne:
    case IndexOp::And:
    case IndexOp::Or:
    case IndexOp::Not: return true;
    case IndexOp::Const: return x.node()->value == 0 || x.node()->value == 1;
    case IndexOp::Select: return is_boolean(Index(x.node()->b)) && is_boolean(Index(x.node()->c));
    case IndexOp::Symbol:
    case IndexOp::Add:
    case IndexOp::Mul:
    case IndexOp::FloorDiv:
    case IndexOp::FloorMod:
    case IndexOp::Min:
    case IndexOp::Max: return false;
  }
  return false;
}

namespace {
Index as_boolean(Index x) { return is_boolean(x) ? x : not_equal(x, context_of(x).constant(0)); }
}  // namespace

Index logical_and(Index x, Index y) {
  x = as_boolean(x), y = as_boolean(y);
  if (const auto c = x.constant()) return *c ? y : x;
  if (const auto c = y.constant()) return *c ? x : y;
  return x == y ? x : commutative(IndexOp::And, x, y);
}
Index logical_or(Index x, Index y) {
  x = as_boolean(x), y = as_boolean(y);
  if (const auto c = x.constant()) return *c ? x : y;
  if (const auto c = y.constant()) return *c ? y : x;
  return x == y ? x : commutative(IndexOp::Or, x, y);
}
Index logical_not(Index x) {
  x = as_boolean(x);
  IndexContext& context = context_of(x);
  if (const auto c = x.constant()) return context.constant(*c ? 0 : 1);
  const Index a(x.node()->a), b(x.node()->b);
  switch (x.op()) {
    case IndexOp::Not: return a;
    case IndexOp::Lt: return less_equal(b, a);
    case IndexOp::Le: return less(b, a);
    case IndexOp::Eq: return not_equal(a, b);
    case IndexOp::Ne: return equal(a, b);
    default: return context.intern(IndexOp::Not, x);
  }
}

Index substitute(Index x, const std::function<Index(const Value*)>& map, IndexContext& into) {
  const IndexNode& n = *x.node();
  const auto sub = [&](const IndexNode* child) { return substitute(Index(child), map, into); };
  switch (n.op) {
    case IndexOp::Const: return into.constant(n.value);
    case IndexOp::Symbol: {
      const Index replacement = map(n.symbol);
      return replacement ? replacement : into.symbol(n.symbol);
    }
    case IndexOp::Add: return sub(n.a) + sub(n.b);
    case IndexOp::Mul: return sub(n.a) * sub(n.b);
    case IndexOp::FloorDiv: return floordiv(sub(n.a), sub(n.b));
    case IndexOp::FloorMod: return floormod(sub(n.a), sub(n.b));
    case IndexOp::Min: return min(sub(n.a), sub(n.b));
    case IndexOp::Max: return max(sub(n.a), sub(n.b));
    case IndexOp::Select: return select(sub(n.a), sub(n.b), sub(n.c));
    case IndexOp::Lt: return less(sub(n.a), sub(n.b));
    case IndexOp::Le: return less_equal(sub(n.a), sub(n.b));
    case IndexOp::Eq: return equal(sub(n.a), sub(n.b));
    case IndexOp::Ne: return not_equal(sub(n.a), sub(n.b));
    case IndexOp::And: return logical_and(sub(n.a), sub(n.b));
    case IndexOp::Or: return logical_or(sub(n.a), sub(n.b));
    case IndexOp::Not: return logical_not(sub(n.a));
  }
  return x;
}

void for_each_symbol(Index x, const std::function<void(const Value*)>& visit) {
  std::unordered_set<const IndexNode*> seen;
  const std::function<void(const IndexNode*)> walk = [&](const IndexNode* n) {
    if (!n || !seen.insert(n).second) return;
    if (n->op == IndexOp::Symbol) visit(n->symbol);
    walk(n->a), walk(n->b), walk(n->c);
  };
  walk(x.node());
}

bool uses_symbol(Index x, const Value* symbol) {
  bool used = false;
  for_each_symbol(x, [&](const Value* v) { used |= v == symbol; });
  return used;
}

int64_t evaluate(Index x, const std::function<int64_t(const Value*)>& value_of) {
  const IndexNode& n = *x.node();
  const auto at = [&](const IndexNode* child) { return evaluate(Index(child), value_of); };
  switch (n.op) {
    case IndexOp::Const: return n.value;
    case IndexOp::Symbol: return value_of(n.symbol);
    case IndexOp::Add: return wrapping_add(at(n.a), at(n.b));
    case IndexOp::Mul: return wrapping_mul(at(n.a), at(n.b));
    case IndexOp::FloorDiv: return floor_div(at(n.a), at(n.b));
    case IndexOp::FloorMod: return floor_mod(at(n.a), at(n.b));
    case IndexOp::Min: return std::min(at(n.a), at(n.b));
    case IndexOp::Max: return std::max(at(n.a), at(n.b));
    case IndexOp::Select: return at(n.a) != 0 ? at(n.b) : at(n.c);
    case IndexOp::Lt: return at(n.a) < at(n.b);
    case IndexOp::Le: return at(n.a) <= at(n.b);
    case IndexOp::Eq: return at(n.a) == at(n.b);
    case IndexOp::Ne: return at(n.a) != at(n.b);
    case IndexOp::And: return at(n.a) != 0 && at(n.b) != 0;
    case IndexOp::Or: return at(n.a) != 0 || at(n.b) != 0;
    case IndexOp::Not: return at(n.a) == 0;
  }
  return 0;
}

std::string to_string(Index x, const std::function<std::string(const Value*)>& name_of) {
  const IndexNode& n = *x.node();
  const auto text = [&](const IndexNode* child) { return to_string(Index(child), name_of); };
  switch (n.op) {
    case IndexOp::Const: return std::to_string(n.value);
    case IndexOp::Symbol: return name_of(n.symbol);
    case IndexOp::Min: return fmt::format("min({}, {})", text(n.a), text(n.b));
    case IndexOp::Max: return fmt::format("max({}, {})", text(n.a), text(n.b));
    case IndexOp::Select: return fmt::format("select({}, {}, {})", text(n.a), text(n.b), text(n.c));
    case IndexOp::Not: return fmt::format("(not {})", text(n.a));
    default: return fmt::format("({} {} {})", text(n.a), infix(n.op), text(n.b));
  }
}

size_t IndexContext::Hash::operator()(const IndexNode* n) const {
  const auto mix = [](size_t h, size_t v) { return (h ^ v) * 0x9e3779b97f4a7c15ULL + (h >> 29); };
  size_t h = mix(static_cast<size_t>(n->op), static_cast<size_t>(n->value));
  for (const void* p : {static_cast<const void*>(n->symbol), static_cast<const void*>(n->a),
                        static_cast<const void*>(n->b), static_cast<const void*>(n->c)}) {
    h = mix(h, reinterpret_cast<size_t>(p));
  }
  return h;
}

bool IndexContext::Same::operator()(const IndexNode* x, const IndexNode* y) const {
  return x->op == y->op && x->value == y->value && x->symbol == y->symbol && x->a == y->a && x->b == y->b &&
         x->c == y->c;
}

Index IndexContext::intern_node(IndexNode node) {
  if (const auto found = table_.find(&node); found != table_.end()) return Index(found->second);
  node.context = this;
  const IndexNode* stored = &nodes_.emplace_back(node);
  table_.emplace(stored, stored);
  return Index(stored);
}

Index IndexContext::constant(int64_t v) { return intern_node({.op = IndexOp::Const, .value = v}); }
Index IndexContext::symbol(const Value* v) { return intern_node({.op = IndexOp::Symbol, .symbol = v}); }
Index IndexContext::intern(IndexOp op, Index a, Index b, Index c) {
  return intern_node({.op = op, .a = a.node(), .b = b.node(), .c = c.node()});
}

}  // namespace tilewright::ir
