#include "transform/join_gemm_steps.h"

#include <fmt/format.h>

#include <optional>

namespace tilewright::transform {
namespace {

using ir::Index;
using ir::Op;
using ir::OpKind;
using ir::Value;
using ir::View;

/// The trip count of a loop from 0 by 1 that carries nothing.
Index trip_count(const Op& loop) {
  if (loop.kind == OpKind::Pipelined) return loop.as<ir::PipelinedAttributes>().count;
  if (loop.kind != OpKind::For || !loop.operands.empty()) return {};
  const auto& a = loop.as<ir::ForAttributes>();
  return a.lo.is_constant(0) && a.step.is_constant(1) ? a.hi : Index();
}

/// The only operation of a body, besides its yield.
Op* only_gemm(const Op& loop) {
  const ir::Region& body = *loop.regions[0];
  Op* found = nullptr;
  for (Op* op : body.ops) {
    if (op->kind == OpKind::Yield && op->operands.empty()) continue;
    if (op->kind != OpKind::Gemm || found) return nullptr;
    found = op;
  }
  return found;
}

/// The view stretched over all steps; nothing when it does not move by exactly its extent along kept dimension `depth`.
std::optional<View> stretched(const View& view, int depth, const Value* variable, Index count) {
  View out = view;
  int kept = 0;
  for (ir::Slice& s : out.slices) {
    const bool is_depth = s.keep && kept == depth;
    kept += s.keep;
    if (uses_symbol(s.extent, variable)) return std::nullopt;
    if (!is_depth) {
      if (uses_symbol(s.start, variable)) return std::nullopt;
      continue;
    }
    ir::IndexContext& context = *s.start.node()->context;
    const Index first = s.start - context.symbol(variable) * s.extent;
    if (!s.extent.constant() || uses_symbol(first, variable)) return std::nullopt;
    s.start = first, s.extent = count * s.extent;
  }
  return out;
}

bool join(ir::Region& region, PassContext& context) {
  bool changed = false;
  for (Op*& op : region.ops) {
    for (ir::Region* inner : op->regions) changed |= join(*inner, context);
    Index count = op->regions.size() == 1 ? trip_count(*op) : Index();
    if (!count) continue;
    Op* gemm = only_gemm(*op);
    if (!gemm) continue;
    const Value* variable = op->regions[0]->arguments[0];
    auto& g = gemm->as<ir::GemmAttributes>();
    const auto uses = [&](const View& v) {
      for (const ir::Slice& s : v.slices) {
        if (uses_symbol(s.start, variable)) return true;
      }
      return false;
    };
    if (!g.accumulate || uses(g.c)) continue;
    if (context.options.plant.is("join_gemm_steps", 1)) count = count - 1;
    const auto a = stretched(g.a, g.transpose_a ? 0 : 1, variable, count);
    const auto b = stretched(g.b, g.transpose_b ? 1 : 0, variable, count);
    if (!a || !b) continue;
    g.a = *a, g.b = *b;
    context.notes.push_back(
        {"join_gemm_steps", "all steps of the loop are one gemm; cache blocks replace block_K", gemm->location});
    op = gemm;
    changed = true;
  }
  return changed;
}

}  // namespace

bool join_gemm_steps(ir::Kernel& kernel, PassContext& context) { return join(*kernel.body, context); }

}  // namespace tilewright::transform
