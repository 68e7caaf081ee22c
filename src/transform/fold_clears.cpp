#include "transform/fold_clears.h"

#include <algorithm>
#include <cmath>

#include "transform/uses.h"

namespace tilewright::transform {
namespace {

using ir::Op;
using ir::OpKind;

bool is_zero(const ir::Value* v, bool any) {
  if (!v->def || v->def->kind != OpKind::Constant) return false;
  const auto& c = v->def->as<ir::ConstantAttributes>();
  return any || (c.real == 0 && !std::signbit(c.real) && c.integer == 0);
}

bool is_whole(const ir::View& v) {
  return v.slices.size() == v.buffer->type.shape.size() && v.extents() == v.buffer->type.shape;
}

bool mentions(const Op& op, const ir::Value* buffer) {
  if (std::ranges::count(buffers_of(op), buffer) > 0) return true;
  return std::ranges::any_of(op.regions, [&](const ir::Region* r) {
    return std::ranges::any_of(r->ops, [&](const Op* inner) { return mentions(*inner, buffer); });
  });
}

bool fold(ir::Region& region, PassContext& context) {
  bool changed = false;
  for (size_t i = 0; i < region.ops.size(); ++i) {
    for (ir::Region* inner : region.ops[i]->regions) changed |= fold(*inner, context);
    if (region.ops[i]->kind != OpKind::Fill) continue;
    const Op* fill = region.ops[i];
    const ir::View& dst = fill->as<ir::FillAttributes>().dst;
    if (!is_zero(fill->operands[0], context.options.plant.is("fold_clears", 1)) || !is_whole(dst)) continue;
    size_t next = i + 1;
    while (next < region.ops.size() && !mentions(*region.ops[next], dst.buffer)) ++next;
    if (next == region.ops.size() || region.ops[next]->kind != OpKind::Gemm) continue;
    auto& g = region.ops[next]->as<ir::GemmAttributes>();
    if (g.c.buffer != dst.buffer || !is_whole(g.c) || !g.accumulate || g.a.buffer == dst.buffer ||
        g.b.buffer == dst.buffer)
      continue;
    g.accumulate = false;
    region.ops.erase(region.ops.begin() + static_cast<std::ptrdiff_t>(i--));
    changed = true;
  }
  return changed;
}

}  // namespace

bool fold_clears(ir::Kernel& kernel, PassContext& context) { return fold(*kernel.body, context); }

}  // namespace tilewright::transform
