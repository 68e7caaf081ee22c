// Loops over lanes: which dimension of a `parallel` becomes the lanes, the loops around it, the masked tail.
#include <algorithm>
#include <bit>

#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::Op;
using ir::OpKind;
using ir::Value;

/// Loops over `extents` with the chosen dimension innermost, `lanes` at a time. `before_lanes` runs once per lane loop.
void Lowering::nest(const std::vector<Index>& extents, LaneChoice choice, const NestBody& body,
                    const NestBody& before_lanes) {
  std::vector<Index> at(extents.size(), number(0));
  const std::function<void(size_t)> outer = [&](size_t d) {
    if (d == extents.size()) {
      if (before_lanes) before_lanes(at);
      if (choice.dimension < 0) return body(at);
      const auto lane = static_cast<size_t>(choice.dimension);
      const Index extent = extents[lane];
      const Lanes outside = lanes_;
      const auto loop = [&](Index lo, Index hi, bool masked) {
        b_.for_loop(lo, hi, number(choice.lanes), [&](const std::vector<Value*>& v) {
          bounds_.declare(v[0], number(0), extent - 1);
          lanes_ = outside;
          if (choice.lanes > 1) lanes_ = {.count = choice.lanes, .variable = v[0]};
          if (masked) lanes_.remaining = extent - vector_.indices().symbol(v[0]);
          at[lane] = vector_.indices().symbol(v[0]);
          body(at);
          lanes_ = outside;
          b_.yield({});
        });
      };
      const Index whole = floordiv(extent, choice.lanes) * choice.lanes;
      if (!whole.is_constant(0)) loop(number(0), whole, false);
      if (!(extent - whole).is_constant(0)) loop(whole, extent, true);
      at[lane] = number(0);
      return;
    }
    if (static_cast<int>(d) == choice.dimension) return outer(d + 1);
    if (extents[d].is_constant(1)) return outer(d + 1);
    b_.for_loop(number(0), extents[d], number(1), [&](const std::vector<Value*>& v) {
      bounds_.declare(v[0], number(0), extents[d] - 1);
      at[d] = vector_.indices().symbol(v[0]);
      outer(d + 1);
      at[d] = number(0);
      b_.yield({});
    });
  };
  outer(0);
}

int Lowering::lanes_for(Index extent, DType dtype) const {
  int lanes = std::min(cpu_.vector_bits / std::max(bits(dtype), 8), 64);
  if (const auto n = extent.constant(); n && *n < lanes) {
    lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(*n, 1))));
  }
  return lanes;
}

namespace {

/// What vectorising one variable would mean for the accesses of a body.
class LaneCost {
 public:
  explicit LaneCost(const Value* variable) { dependent_.insert(variable); }

  bool visit(const ir::Region& region) {
    for (const Op* op : region.ops) {
      if (!visit(*op)) return false;
    }
    return true;
  }
  double cost() const { return cost_; }

 private:
  bool depends(Index x) const {
    bool found = false;
    for_each_symbol(x, [&](const Value* v) { found |= dependent_.contains(v); });
    return found;
  }

  bool visit(const Op& op) {
    bool dependent = false;
    for (const Value* v : op.operands) dependent |= dependent_.contains(v);
    switch (op.kind) {
      case OpKind::Load: {
        const auto& a = op.as<ir::AccessAttributes>();
        if (a.buffer->type.space == ir::MemorySpace::Local || a.buffer->type.space == ir::MemorySpace::Var) {
          dependent |= inside_.contains(a.buffer);
        }
        dependent |= add_access(a, false);
        break;
      }
      case OpKind::Store:
        if (!add_access(op.as<ir::AccessAttributes>(), true)) return false;
        break;
      case OpKind::Alloc: inside_.insert(op.result()); break;
      case OpKind::IndexValue: dependent |= depends(op.as<ir::IndexAttributes>().index); break;
      case OpKind::For: {
        const auto& a = op.as<ir::ForAttributes>();
        if (dependent || depends(a.lo) || depends(a.hi) || depends(a.step)) return false;
        for (const Value* v : op.results) dependent_.insert(v);
        for (size_t i = 1; i < op.regions[0]->arguments.size(); ++i) dependent_.insert(op.regions[0]->arguments[i]);
        return visit(*op.regions[0]);
      }
      case OpKind::If:
        for (const Value* v : op.results) dependent_.insert(v);
        return visit(*op.regions[0]) && (op.regions.size() < 2 || visit(*op.regions[1]));
      case OpKind::Constant:
      case OpKind::Unary:
      case OpKind::Binary:
      case OpKind::Compare:
      case OpKind::Select:
      case OpKind::Cast:
      case OpKind::Assume:
      case OpKind::Yield: break;
      default: return false;  // print, assert, atomics, while: one iteration at a time
    }
    if (dependent) {
      for (const Value* v : op.results) dependent_.insert(v);
    }
    return true;
  }

  /// True when lanes differ. A store whose lanes do not differ cannot be vectorised.
  bool add_access(const ir::AccessAttributes& a, bool is_store) {
    if (inside_.contains(a.buffer)) {
      cost_ += 1;
      return true;
    }
    bool any = false, regular = true;
    for (size_t d = 0; d < a.indices.size(); ++d) {
      if (!depends(a.indices[d])) continue;
      any = true;
      int64_t step = 0;
      for (const auto& term : linear_form(a.indices[d]).terms) {
        if (!depends(term.factor)) continue;
        step = dependent_.contains(term.factor.symbol()) && term.factor.symbol()->owner ? term.coefficient : 0;
        if (step == 0) break;
      }
      regular &= step == 1 && d + 1 == a.indices.size();
    }
    if (!any)
      cost_ += 0.5;
    else
      cost_ += regular ? 1 : is_store ? 14 : 9;
    return any;
  }

  std::unordered_set<const Value*> dependent_;
  std::unordered_set<const Value*> inside_;
  double cost_ = 0;
};

/// The widest type the body computes in.
DType widest_type(const ir::Region& body) {
  DType widest = DType::I8;
  for_each_op(body, [&](Op& op) {
    if (op.kind != OpKind::Load && op.kind != OpKind::Store) return;
    const DType dtype = compute_type(op.as<ir::AccessAttributes>().buffer->type.dtype);
    if (bits(dtype) > bits(widest)) widest = dtype;
  });
  return widest;
}

}  // namespace

LaneChoice Lowering::choose_lanes(const Op& parallel) {
  const ir::Region& body = *parallel.regions[0];
  const auto& extents = parallel.as<ir::ParallelAttributes>().extents;
  LaneChoice best{.dimension = static_cast<int>(extents.size()) - 1, .lanes = 1};
  LaneCost scalar(nullptr);
  double best_cost = 1e30;
  const DType widest = widest_type(body);
  for (size_t d = extents.size(); d-- > 0;) {
    LaneCost cost(body.arguments[d]);
    const int lanes = lanes_for(map(extents[d]), widest);
    if (lanes == 1 || !cost.visit(body)) continue;
    const int64_t used = std::min<int64_t>(lanes, extents[d].constant().value_or(lanes));
    const double per_element = (cost.cost() + 1) / static_cast<double>(used);
    if (per_element < best_cost * 0.999) best_cost = per_element, best = {static_cast<int>(d), lanes};
  }
  return best;
}

/// Loads and pure operations that are equal for every lane are computed before the lane loop.
void Lowering::hoist_uniform(const ir::Region& body, const Value* lane_variable) {
  std::unordered_set<const Value*> stored, inner{lane_variable};
  for_each_op(body, [&](Op& op) {
    if (op.kind == OpKind::Store) stored.insert(op.as<ir::AccessAttributes>().buffer);
    if (op.kind == OpKind::Alloc) stored.insert(op.result());
  });
  const auto is_outer = [&](Index x) {
    bool outer = true;
    for_each_symbol(x, [&](const Value* v) { outer &= !inner.contains(v); });
    return outer;
  };
  for (const Op* op : body.ops) {
    bool movable = info(op->kind).traits & ir::kPure && op->kind != OpKind::Assume;
    if (op->kind == OpKind::Load) {
      const auto& a = op->as<ir::AccessAttributes>();
      movable = !stored.contains(a.buffer);
      for (Index i : a.indices) movable &= is_outer(i);
    }
    if (op->kind == OpKind::IndexValue) movable = is_outer(op->as<ir::IndexAttributes>().index);
    for (const Value* v : op->operands) movable &= !inner.contains(v);
    if (movable) {
      b_.set_location(op->location);
      lower_element(*op);
      hoisted_.insert(op->result());
      continue;
    }
    for (const Value* v : op->results) inner.insert(v);
  }
}

namespace {

/// The terms of a conjunction.
void collect_terms(Index condition, std::vector<Index>& out) {
  if (condition.op() != ir::IndexOp::And) return out.push_back(condition);
  collect_terms(Index(condition.node()->a), out), collect_terms(Index(condition.node()->b), out);
}

/// What must stay positive: b - a of a < b, b - a + 1 of a <= b.
Index gap_of(Index term) {
  if (term.op() != ir::IndexOp::Lt && term.op() != ir::IndexOp::Le) return {};
  return Index(term.node()->b) - Index(term.node()->a) + (term.op() == ir::IndexOp::Le ? 1 : 0);
}

/// `if` around everything that `body` does besides pure operations; null when there is none.
const Op* guard_of(const ir::Region& body) {
  const Op* guard = nullptr;
  for (const Op* op : body.ops) {
    if (op->kind == OpKind::Yield) continue;
    if (op->kind == OpKind::If && !guard && op->results.empty()) {
      const bool has_else = op->regions.size() > 1 && std::ranges::any_of(op->regions[1]->ops, [](const Op* inner) {
                              return inner->kind != OpKind::Yield;
                            });
      if (has_else) return nullptr;
      guard = op;
    } else if (guard || !(info(op->kind).traits & ir::kPure) || op->kind == OpKind::Assume) {
      return nullptr;
    }
  }
  return guard;
}

}  // namespace

/// A guard that bounds iteration variables from above (`if b*64 + i < N`) shortens their loops.
GuardedBody Lowering::peel_guard(const Op& parallel) const {
  const ir::Region& body = *parallel.regions[0];
  GuardedBody whole{&body, nullptr, map(parallel.as<ir::ParallelAttributes>().extents)};
  const Op* guard = guard_of(body);
  const Op* test = guard ? guard->operands[0]->def : nullptr;
  if (!test || test->kind != OpKind::IndexValue) return whole;
  GuardedBody out = whole;
  std::vector<Index> terms;
  collect_terms(test->as<ir::IndexAttributes>().index, terms);
  for (Index term : terms) {
    const Index gap = gap_of(term);
    if (!gap) return whole;
    size_t bounded = body.arguments.size();
    for (size_t d = 0; d < body.arguments.size(); ++d) {
      if (!uses_symbol(gap, body.arguments[d])) continue;
      if (bounded != body.arguments.size()) return whole;
      bounded = d;
    }
    if (bounded == body.arguments.size()) return whole;
    const Index limit = gap + gap.node()->context->symbol(body.arguments[bounded]);
    if (uses_symbol(limit, body.arguments[bounded])) return whole;
    bool is_outer = true;
    for_each_symbol(limit, [&](const Value* v) { is_outer &= values_.contains(v) || arguments_.index_of(v); });
    if (!is_outer) return whole;
    const int64_t beyond = options_.plant.is("lower_nest", 1) ? 1 : 0;  // planted: one iteration too many
    const Index count = map(limit) + beyond;  // below zero where the guard holds for no iteration
    const bool may_be_negative = !bounds_.is_never_negative(count) && !options_.plant.is("lower_nest", 2);
    out.extents[bounded] = min(out.extents[bounded], may_be_negative ? max(count, number(0)) : count);
  }
  out.body = guard->regions[0], out.guard = guard;
  return out;
}

/// The operations before a guard that was left out, then what it guards.
Status Lowering::lower_body(const Op& parallel, const GuardedBody& guarded) {
  if (guarded.guard) {
    for (const Op* op : parallel.regions[0]->ops) {
      if (op == guarded.guard) break;
      if (op == guarded.guard->operands[0]->def || hoisted_.contains(op->result())) continue;
      b_.set_location(op->location);
      lower_element(*op);
    }
  }
  return lower_region(*guarded.body);
}

Status Lowering::lower_parallel(const Op& op) {
  const ir::Region& body = *op.regions[0];
  const LaneChoice choice = choose_lanes(op);
  const GuardedBody guarded = peel_guard(op);
  Status status;
  const auto bind = [&](const std::vector<Index>& at) {
    for (size_t d = 0; d < at.size(); ++d) index_of_[body.arguments[d]] = at[d];
  };
  const auto before_lanes = [&](const std::vector<Index>& at) {
    bind(at);
    hoisted_.clear();
    if (choice.dimension < 0) return;
    const Value* lane = body.arguments[static_cast<size_t>(choice.dimension)];
    hoist_uniform(body, lane);
    if (guarded.guard) hoist_uniform(*guarded.body, lane);
  };
  const auto lower_lanes = [&](const std::vector<Index>& at) {
    bind(at);
    if (status) status = lower_body(op, guarded);
  };
  begin_streams(op);
  const UniformGuard uniform = guarded.guard || choice.lanes == 1 ? UniformGuard{} : find_guard({&op});
  lower_guarded(uniform, [&] { nest(guarded.extents, choice, lower_lanes, before_lanes); });
  hoisted_.clear();
  end_streams();
  return status;
}

}  // namespace tilewright::plan::cpu
