#include "plan/gpu/index_emitter.h"

namespace tilewright::plan::gpu {

using ir::Index;
using ir::IndexOp;
using ir::thread::Compare;

namespace {

// Visits symbols of `x`; with `only_nonlinear`, those under something else than sums and constant multiples.
void symbols(Index x, bool only_nonlinear, const std::function<void(const ir::Value*)>& visit) {
  if (!only_nonlinear) return ir::for_each_symbol(x, visit);
  for (const auto& term : ir::linear_form(x).terms)
    if (!term.factor.symbol()) ir::for_each_symbol(term.factor, visit);
}

}  // namespace

uint64_t IndexEmitter::key_of(Index x, uint64_t salt, bool only_nonlinear) {
  uint64_t key = mix(reinterpret_cast<uint64_t>(x.node()), salt);
  symbols(x, only_nonlinear, [&](const ir::Value* v) {
    const auto it = bound_.find(v);
    if (it != bound_.end()) key = mix(key, static_cast<uint64_t>(it->second.offset) + 1);
  });
  ir::for_each_symbol(x, [&](const ir::Value* v) {
    if (bound_.contains(v)) return;
    const Operand now = computed_(v);
    key = mix(key, now.is_constant ? static_cast<uint64_t>(now.constant) * 2 + 1 : uint64_t{now.reg.id} << 33);
  });
  return key;
}

Operand* IndexEmitter::find(uint64_t key) {
  for (auto it = scopes_.rbegin(); it != scopes_.rend(); ++it)
    if (const auto found = it->find(key); found != it->end()) return &found->second;
  return nullptr;
}

Operand IndexEmitter::widened(Operand v, Scalar from) {
  if (v.is_constant || bytes(type_) == 4 || v.reg.width == ir::thread::Width::W64) return v;
  const uint64_t key = mix(7001, v.reg.id);
  if (const Operand* known = find(key)) return *known;
  const Operand out = b_.convert(type_, from, v);
  remember(key, out);
  return out;
}

Affine IndexEmitter::affine(Index x) {
  if (const auto c = x.constant()) return {0, *c};
  if (x.symbol()) {
    const auto it = bound_.find(x.symbol());
    return it != bound_.end() ? it->second : Affine{computed_(x.symbol()), 0};
  }
  if (x.op() == IndexOp::Add || x.op() == IndexOp::Mul) {
    const ir::LinearForm form = ir::linear_form(x);
    const bool is_product = form.terms.size() == 1 && form.terms[0].factor == x;
    if (!is_product) {
      Affine out{0, form.constant};
      const uint64_t key = key_of(x, 1, true);
      const Operand* known = find(key);
      Operand base = 0;
      for (const auto& term : form.terms) {
        const Affine f = affine(term.factor);
        out.offset += term.coefficient * f.offset;
        if (!known) base = b_.add(type_, base, b_.mul(type_, f.base, term.coefficient));
      }
      if (known)
        base = *known;
      else
        remember(key, base);
      out.base = base;
      return out;
    }
  }
  return compute(x);
}

Operand IndexEmitter::value(Index x) {
  const Affine a = affine(x);
  return b_.add(type_, a.base, a.offset);
}

Affine IndexEmitter::compute(Index x) {
  const uint64_t key = key_of(x, 2, false);
  if (const Operand* known = find(key)) return {*known, 0};
  const ir::IndexNode& n = *x.node();
  Operand out = 0;
  const auto a = [&] { return value(Index(n.a)); };
  const auto c = [&] { return value(Index(n.b)); };
  switch (x.op()) {
    case IndexOp::Mul: out = b_.mul(type_, a(), c()); break;
    case IndexOp::Min: out = b_.min(type_, a(), c()); break;
    case IndexOp::Max: out = b_.max(type_, a(), c()); break;
    case IndexOp::FloorDiv:
    case IndexOp::FloorMod: {
      const Operand x0 = a(), y = c();
      const bool is_division = x.op() == IndexOp::FloorDiv;
      if (y.is_constant && y.constant > 0 &&
          (y.constant & (y.constant - 1)) == 0) {  // floor semantics are shifts and masks
        int shift = 0;
        while ((int64_t{1} << shift) < y.constant) ++shift;
        out = is_division ? b_.shr(type_, x0, shift) : b_.bit_and(type_, x0, y.constant - 1);
        break;
      }
      // q = trunc(x / y), one less when the remainder's sign differs from y's; division by 0 gives 0 (and remainder 0).
      const Operand divisor = y.is_constant ? y : b_.select(type_, b_.compare(Compare::Eq, type_, y, 0), 1, y);
      const Operand q = b_.div(type_, x0, divisor);
      const Operand r = b_.sub(type_, x0, b_.mul(type_, q, divisor));
      Operand wrong = b_.logical_and(b_.compare(Compare::Ne, type_, r, 0),
                                     b_.compare(Compare::Lt, type_, b_.bit_xor(type_, r, divisor), 0));
      if (truncates_) wrong = 0;
      if (is_division)
        out = b_.select(type_, wrong, b_.sub(type_, q, 1), q);
      else
        out = b_.select(type_, wrong, b_.add(type_, r, divisor), r);
      if (!y.is_constant) out = b_.select(type_, b_.compare(Compare::Eq, type_, y, 0), 0, out);
      break;
    }
    case IndexOp::Select: out = b_.select(type_, condition(Index(n.a)), value(Index(n.b)), value(Index(n.c))); break;
    default: {
      const Operand p = condition(x);
      out = p.is_constant ? p : b_.convert(type_, Scalar::Pred, p);
    }
  }
  remember(key, out);
  return {out, 0};
}

Operand IndexEmitter::compare(Index x) {
  const ir::IndexNode& n = *x.node();
  const Affine a = affine(Index(n.a)), c = affine(Index(n.b));
  const Compare how = x.op() == IndexOp::Lt   ? Compare::Lt
                      : x.op() == IndexOp::Le ? Compare::Le
                      : x.op() == IndexOp::Eq ? Compare::Eq
                                              : Compare::Ne;
  // base(a) - base(b) is shared by every register of a tile; only the constant differs.
  const uint64_t key = mix(key_of(Index(n.a), 3, true), key_of(Index(n.b), 4, true));
  Operand difference = 0;
  if (const Operand* known = find(key)) {
    difference = *known;
  } else {
    difference = b_.sub(type_, a.base, c.base);
    remember(key, difference);
  }
  return b_.compare(how, type_, difference, c.offset - a.offset);
}

Operand IndexEmitter::condition(Index x) {
  if (const auto c = x.constant()) return *c != 0 ? 1 : 0;
  const uint64_t key = key_of(x, 5, false);
  if (const Operand* known = find(key)) return *known;
  const ir::IndexNode& n = *x.node();
  Operand out = 0;
  switch (x.op()) {
    case IndexOp::Lt:
    case IndexOp::Le:
    case IndexOp::Eq:
    case IndexOp::Ne: out = compare(x); break;
    case IndexOp::And: out = b_.logical_and(condition(Index(n.a)), condition(Index(n.b))); break;
    case IndexOp::Or: out = b_.logical_or(condition(Index(n.a)), condition(Index(n.b))); break;
    case IndexOp::Not: out = b_.logical_not(condition(Index(n.a))); break;
    default: out = b_.compare(Compare::Ne, type_, value(x), 0);
  }
  remember(key, out);
  return out;
}

}  // namespace tilewright::plan::gpu
