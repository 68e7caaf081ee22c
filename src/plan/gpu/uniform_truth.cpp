// The block-uniform predicate under which a `parallel` needs no masks (DESIGN §3.8).
#include "plan/gpu/lowering.h"
#include "plan/gpu/op_views.h"

namespace tilewright::plan::gpu {

using ir::OpKind;

namespace {

/// Builds the predicate: every required condition holds for all iterations.
class UniformTruth {
 public:
  UniformTruth(const ir::Op& parallel, ir::IndexContext& indices)
      : variables_(parallel.regions[0]->arguments),
        extents_(parallel.as<ir::ParallelAttributes>().extents),
        indices_(indices) {
    ir::for_each_op(*parallel.regions[0], [&](const ir::Op& op) {
      inside_.insert(op.results.begin(), op.results.end());
      for (const ir::Region* r : op.regions) inside_.insert(r->arguments.begin(), r->arguments.end());
    });
  }

  void require(ir::Index x) {
    const ir::IndexNode& n = *x.node();
    ir::for_each_symbol(x, [&](const ir::Value* v) { possible_ &= !inside_.contains(v); });
    if (!possible_) return;
    if (!uses_any(x, variables_)) return add(x);
    if (x.op() == ir::IndexOp::And) {
      require(ir::Index(n.a));
      return require(ir::Index(n.b));
    }
    if (x.op() == ir::IndexOp::Or) return require_either(ir::Index(n.a), ir::Index(n.b));
    if (x.op() != ir::IndexOp::Lt && x.op() != ir::IndexOp::Le) {
      possible_ = false;
      return;
    }
    const ir::Index largest = at_its_largest(ir::Index(n.a) - ir::Index(n.b)), zero = indices_.constant(0);
    add(x.op() == ir::IndexOp::Lt ? ir::less(largest, zero) : ir::less_equal(largest, zero));
  }
  std::optional<ir::Index> result() const { return possible_ ? all_ : std::nullopt; }

 private:
  void add(ir::Index truth) { all_ = all_ ? ir::logical_and(*all_, truth) : truth; }

  /// True when the side that does not vary is; else the other must be.
  void require_either(ir::Index a, ir::Index b) {
    const bool left = uses_any(a, variables_);
    const ir::Index still = left ? b : a, moving = left ? a : b;
    possible_ &= !uses_any(still, variables_);
    std::optional<ir::Index> outer;
    std::swap(all_, outer);
    require(moving);
    const std::optional<ir::Index> inner = all_;
    all_ = outer;
    add(inner ? ir::logical_or(still, *inner) : ir::logical_or(still, moving));
  }

  ir::Index at_its_largest(ir::Index difference) {
    for (size_t d = 0; d < variables_.size(); ++d) {
      int64_t coefficient = 0;
      for (const auto& term : ir::linear_form(difference).terms) {
        if (term.factor.symbol() == variables_[d])
          coefficient = term.coefficient;
        else if (ir::uses_symbol(term.factor, variables_[d]))
          possible_ = false;
      }
      const ir::Index at = coefficient > 0 ? extents_[d] - 1 : indices_.constant(0);
      const auto end = [&](const ir::Value* v) { return v == variables_[d] ? at : ir::Index(); };
      difference = ir::substitute(difference, end, indices_);
    }
    return difference;
  }

  const std::vector<ir::Value*>& variables_;
  const std::vector<ir::Index>& extents_;
  ir::IndexContext& indices_;
  std::unordered_set<const ir::Value*> inside_;  ///< what an iteration computes
  std::optional<ir::Index> all_;
  bool possible_ = true;
};

}  // namespace

std::optional<Operand> Lowering::uniform_truth(const ir::Op& o) {
  UniformTruth truth(o, tile_.indices());
  // Every condition below is taken for true without masks (index_value), so those of inner regions count too.
  ir::for_each_op(*o.regions[0], [&](const ir::Op& inner) {
    if (inner.kind != OpKind::IndexValue || inner.result()->type.dtype != DType::Bool) return;
    const ir::Index x = inner.as<ir::IndexAttributes>().index;
    if (uses_any(x, o.regions[0]->arguments)) truth.require(x);
  });
  const auto all = truth.result();
  return all ? std::optional(index_.condition(*all)) : std::nullopt;
}

}  // namespace tilewright::plan::gpu
