#include "plan/gpu/data_indices.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ir/attribute_fields.h"

namespace tilewright::plan::gpu {
namespace {

/// Visits every index among the fields of an operation.
struct IndexVisitor {
  const std::function<void(ir::Index)>& visit;

  void operator()(const char*, const ir::Index& x) const {
    if (x) visit(x);
  }
  void operator()(const char* field, const std::vector<ir::Index>& list) const {
    for (const ir::Index& x : list) (*this)(field, x);
  }
  void operator()(const char* field, const ir::View& view) const {
    for (const ir::Slice& slice : view.slices) (*this)(field, slice.start), (*this)(field, slice.extent);
  }
  template <typename Other>
  void operator()(const char*, const Other&) const {}
};

/// The largest magnitude of index expressions, in double: what it takes for a number to stay below 2^31.
class Magnitude {
 public:
  explicit Magnitude(const ir::Kernel& tile) {
    for (const ir::Dimension& d : tile.dimensions) variables_[d.value] = kExtent;
    for (const ir::ScalarArgument& s : tile.scalars) variables_[s.value] = kExtent;
  }

  /// Variables of the regions of `op`, whose own indices are known by now.
  void enter(const ir::Op& op) {
    switch (op.kind) {
      case ir::OpKind::Grid: return bind(op, op.as<ir::GridAttributes>().extents);
      case ir::OpKind::Parallel: return bind(op, op.as<ir::ParallelAttributes>().extents);
      case ir::OpKind::Pipelined: return bind(op, {op.as<ir::PipelinedAttributes>().count});
      case ir::OpKind::For: {
        const auto& a = op.as<ir::ForAttributes>();
        variables_[op.regions[0]->arguments[0]] = std::max(of(a.lo), of(a.hi));
        return;
      }
      case ir::OpKind::IndexValue: variables_[op.result()] = of(op.as<ir::IndexAttributes>().index); return;
      default: return;
    }
  }

  double of(ir::Index x) {
    if (const auto known = known_.find(x.node()); known != known_.end()) return known->second;
    const double m = compute(*x.node());
    largest_ = std::max(largest_, m);
    return known_[x.node()] = m;
  }
  bool leaves_32_bits() const { return largest_ >= 0x1p31; }

 private:
  static constexpr double kExtent = 0x1p28;  // the guards allow 2^30: eight of those may be summed at a quarter of it

  void bind(const ir::Op& op, const std::vector<ir::Index>& extents) {
    for (size_t i = 0; i < extents.size(); ++i) variables_[op.regions[0]->arguments[i]] = of(extents[i]);
  }

  double compute(const ir::IndexNode& n) {
    const auto at = [&](const ir::IndexNode* x) { return x ? of(ir::Index(x)) : 0; };
    const double a = at(n.a), b = at(n.b), c = at(n.c);
    switch (n.op) {
      case ir::IndexOp::Const: return std::fabs(static_cast<double>(n.value));
      case ir::IndexOp::Symbol: {
        const auto known = variables_.find(n.symbol);
        return known == variables_.end() ? kExtent : known->second;
      }
      case ir::IndexOp::Add: return a + b;
      case ir::IndexOp::Mul: return a * b;
      case ir::IndexOp::FloorDiv: return n.b->op == ir::IndexOp::Const && b > 0 ? a / b + 1 : a;
      case ir::IndexOp::FloorMod: return n.b->op == ir::IndexOp::Const ? b : std::max(a, b);
      case ir::IndexOp::Min:
      case ir::IndexOp::Max: return std::max(a, b);
      case ir::IndexOp::Select: return std::max(b, c);
      default: return 1;
    }
  }

  std::unordered_map<const ir::Value*, double> variables_;
  std::unordered_map<const ir::IndexNode*, double> known_;
  double largest_ = 0;
};

}  // namespace

DataIndices data_indices(const ir::Kernel& tile) {
  DataIndices out;
  Magnitude magnitude(tile);
  const auto is_scalar = [&](const ir::Value* v) {
    return std::ranges::any_of(tile.scalars, [&](const ir::ScalarArgument& s) { return s.value == v; });
  };
  const std::function<void(const ir::Value*)> note = [&](const ir::Value* v) {
    if (is_scalar(v)) out.scalars.insert(v);
    // The value of an index expression is looked at where that expression stands.
    if (v->def && v->def->kind != ir::OpKind::IndexValue) out.computed = v;
  };
  const std::function<void(ir::Index)> look = [&](ir::Index x) {
    ir::for_each_symbol(x, note);
    magnitude.of(x);
  };
  ir::for_each_op(*tile.body, [&](ir::Op& op) {
    ir::visit_fields(op.attributes, IndexVisitor{look});
    magnitude.enter(op);
    if (magnitude.leaves_32_bits() && !out.large) out.large = &op;
  });
  return out;
}

}  // namespace tilewright::plan::gpu
