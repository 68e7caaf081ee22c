#include "plan/gpu/data_indices.h"

#include <algorithm>

#include "ir/attribute_fields.h"

namespace tilewright::plan::gpu {
namespace {

/// Visits the symbols of every index among the fields of an operation.
struct SymbolVisitor {
  const std::function<void(const ir::Value*)>& visit;

  void operator()(const char*, const ir::Index& x) const {
    if (x) ir::for_each_symbol(x, visit);
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

}  // namespace

DataIndices data_indices(const ir::Kernel& tile) {
  DataIndices out;
  const auto is_scalar = [&](const ir::Value* v) {
    return std::ranges::any_of(tile.scalars, [&](const ir::ScalarArgument& s) { return s.value == v; });
  };
  const std::function<void(const ir::Value*)> note = [&](const ir::Value* v) {
    if (is_scalar(v)) out.scalars.insert(v);
    // The value of an index expression is looked at where that expression stands.
    if (v->def && v->def->kind != ir::OpKind::IndexValue) out.computed = v;
  };
  ir::for_each_op(*tile.body, [&](ir::Op& op) { ir::visit_fields(op.attributes, SymbolVisitor{note}); });
  return out;
}

}  // namespace tilewright::plan::gpu
