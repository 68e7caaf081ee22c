// Masks that cost nothing inside: a pass whose conditions are affine in its iteration variables is lowered twice, bare
// where they hold for the whole block and masked at the edge, behind one test per block.
//
//   parallel(i, j) { s[i, j] = select(t*64 + j < T, s[i, j], -inf) }
//     =>   if t*64 + 63 < T { s[i, j] = s[i, j] } else { s[i, j] = select(t*64 + j < T, s[i, j], -inf) }
#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::IndexOp;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

/// A condition over iteration variables that, when true, implies `term` for all of them; empty when it is not affine.
Index for_all_iterations(Index condition, const Op& parallel) {
  if (condition.op() == IndexOp::And) {
    const Index a = for_all_iterations(Index(condition.node()->a), parallel);
    const Index b = for_all_iterations(Index(condition.node()->b), parallel);
    return a && b ? logical_and(a, b) : Index();
  }
  const auto& variables = parallel.regions[0]->arguments;
  const auto& extents = parallel.as<ir::ParallelAttributes>().extents;
  const auto is_uniform = [&](Index x) {
    bool uniform = true;
    for (const Value* v : variables) uniform &= !uses_symbol(x, v);
    return uniform;
  };
  if (is_uniform(condition)) return condition;
  if (condition.op() != IndexOp::Lt && condition.op() != IndexOp::Le) return {};
  Index gap = Index(condition.node()->b) - Index(condition.node()->a);
  for (size_t d = 0; d < variables.size(); ++d) {
    int64_t coefficient = 0;
    for (const auto& term : linear_form(gap).terms) {
      if (term.factor.symbol() == variables[d]) coefficient = term.coefficient;
    }
    const Index variable = gap.node()->context->symbol(variables[d]);
    gap = gap - variable * coefficient;
    if (coefficient < 0) gap = gap + (extents[d] - 1) * coefficient;
  }
  if (!is_uniform(gap)) return {};
  const Index zero = gap.node()->context->constant(0);
  return condition.op() == IndexOp::Lt ? less(zero, gap) : less_equal(zero, gap);
}

}  // namespace

UniformGuard Lowering::find_guard(const std::vector<const Op*>& parallels) const {
  UniformGuard out;
  for (const Op* parallel : parallels) {
    if (parallel->kind != OpKind::Parallel) continue;
    for (const Op* op : parallel->regions[0]->ops) {
      if (op->kind != OpKind::IndexValue || op->result()->type.dtype != DType::Bool) continue;
      const Index all = for_all_iterations(op->as<ir::IndexAttributes>().index, *parallel);
      if (!all || all == op->as<ir::IndexAttributes>().index) continue;
      bool is_outer = true;
      for_each_symbol(all, [&](const Value* v) { is_outer &= values_.contains(v) || arguments_.index_of(v); });
      if (!is_outer) continue;
      out.holds = out.holds ? logical_and(out.holds, map(all)) : map(all);
      out.conditions.push_back(op->result());
    }
  }
  return out;
}

/// Calls `lower` bare under the test and masked otherwise; once when the test is decided or there is none.
void Lowering::lower_guarded(const UniformGuard& guard, const std::function<void()>& lower) {
  if (!guard.holds) return lower();
  const auto bare = [&] {
    assumed_.insert(guard.conditions.begin(), guard.conditions.end());
    lower();
    for (const Value* v : guard.conditions) assumed_.erase(v);
  };
  if (bounds_.always_holds(guard.holds)) return bare();
  const Index holds =
      options_.plant.is("guard_uniform", 1) ? logical_or(guard.holds, number(1)) : guard.holds;  // planted: no edge
  if (holds.constant()) return bare();
  b_.if_else(
      b_.index_condition(holds), [&](const std::vector<Value*>&) { bare(), b_.yield({}); },
      [&](const std::vector<Value*>&) { lower(), b_.yield({}); });
}

}  // namespace tilewright::plan::cpu
