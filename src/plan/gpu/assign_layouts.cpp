// Layout inference (DESIGN §3.7): which fragments live in registers, and under which distribution.
//
// Registers first: every fragment is eligible until an access says otherwise. Then seeds (matrix instructions), then
// propagation until nothing changes, then a default for the first fragment without a layout, and again. Where two uses
// of a fragment disagree, its layout is converted at the use (convert_layout.cpp).
#include <fmt/format.h>

#include <algorithm>

#include "plan/gpu/lowering.h"
#include "plan/gpu/op_views.h"

namespace tilewright::plan::gpu {

using ir::OpKind;

namespace {

Distribution project(const Distribution& iteration, const std::vector<int>& kept) {
  Distribution out = iteration;
  for (int d = iteration.rank() - 1; d >= 0; --d)
    if (std::find(kept.begin(), kept.end(), d) == kept.end()) out = slice(out, d);
  return out;
}

/// Every index is a variable of `parallel` that runs over the whole dimension.
bool registers_serve(const ir::Op& parallel, const ir::Op& access, const ir::Value* buffer,
                     const std::vector<ir::Index>& indices) {
  const auto variables = variables_of(parallel, indices);
  if (!variables || access.kind == OpKind::Atomic) return false;
  const auto& extents = parallel.as<ir::ParallelAttributes>().extents;
  for (size_t d = 0; d < variables->size(); ++d)
    if (!(buffer->type.shape[d] == extents[static_cast<size_t>((*variables)[d])])) return false;
  return true;
}

}  // namespace

const Distribution* Lowering::distribution_of(const ir::Value* buffer) const {
  const auto it = layouts_.find(buffer);
  return it == layouts_.end() || it->second.digits.empty() ? nullptr : &it->second;
}

std::vector<const ir::Value*> Lowering::fragments_in_order() const {
  std::vector<const ir::Value*> out;
  for (const ir::Op* op : ops_)
    if (op->kind == OpKind::Alloc && is_fragment(op->result())) out.push_back(op->result());
  return out;
}

void Lowering::find_register_fragments() {
  const auto order = fragments_in_order();
  std::unordered_set<const ir::Value*> eligible(order.begin(), order.end());
  std::unordered_set<const ir::Op*> inside_parallel;
  for (const ir::Op* op : ops_) {
    const Views views = views_of(*op);
    for (const auto* list : {&views.reads, &views.writes})
      for (const ir::View* v : *list)
        if (!is_whole(*v) || op->kind == OpKind::Scan || op->kind == OpKind::ReduceArg) eligible.erase(v->buffer);
    if (op->kind != OpKind::Parallel) continue;
    for_each_access(*op->regions[0], [&](const ir::Op& access, const ir::Value* buffer, const auto& indices) {
      inside_parallel.insert(&access);
      if (!registers_serve(*op, access, buffer, indices)) eligible.erase(buffer);
    });
  }
  for (const ir::Op* op : ops_) {
    if (inside_parallel.contains(op)) continue;
    if (op->kind == OpKind::Load) eligible.erase(op->as<ir::AccessAttributes>().buffer);
    if (const ir::Value* buffer = stored_buffer(*op)) eligible.erase(buffer);
  }
  for (const ir::Value* v : order)
    if (eligible.contains(v)) layouts_[v] = {};
}

/// Rows over the threads, in runs as long as 16 bytes of the narrowest tile it is copied from or to.
Distribution Lowering::default_layout(const ir::Value* bare) const {
  int element = std::max(2, bytes(bare->type.dtype));
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Copy) continue;
    const auto& a = op->as<ir::CopyAttributes>();
    if (a.src.buffer == bare) element = std::min(element, std::max(2, bytes(a.dst.buffer->type.dtype)));
    if (a.dst.buffer == bare) element = std::min(element, std::max(2, bytes(a.src.buffer->type.dtype)));
  }
  return row_major(constant_shape(bare->type), threads_, std::max(1, 16 / element));
}

void Lowering::assign_layouts(const std::function<std::optional<Distribution>(const ir::Op&, const ir::Value*)>& seed) {
  find_register_fragments();
  const auto order = fragments_in_order();
  for (const ir::Op* op : ops_) {
    const Views views = views_of(*op);
    for (const auto* list : {&views.writes, &views.reads})
      for (const ir::View* v : *list)
        if (layouts_.contains(v->buffer) && !distribution_of(v->buffer))
          if (auto d = seed(*op, v->buffer)) layouts_[v->buffer] = std::move(*d);
  }
  for (;;) {
    bool changed = false;
    for (const ir::Op* op : ops_) changed |= propagate(*op);
    if (changed) continue;
    const ir::Value* bare = nullptr;
    for (const ir::Value* v : order)  // the tile of highest rank decides for those sliced from it
      if (layouts_.contains(v) && !distribution_of(v) && (!bare || v->type.rank() > bare->type.rank())) bare = v;
    if (!bare) break;
    layouts_[bare] = default_layout(bare);
  }
  for (const ir::Value* v : order)
    fact(fmt::format("fragment {}", v->name),
         layouts_.contains(v) ? to_text(layouts_[v]) : "in shared memory: an access registers cannot serve", {});
}

// True when a fragment without a layout got one from `op`.
bool Lowering::propagate(const ir::Op& op) {
  bool changed = false;
  const auto give = [&](const ir::Value* v, const Distribution& d) {
    if (!layouts_.contains(v) || distribution_of(v)) return;
    layouts_[v] = d;
    changed = true;
  };
  if (op.kind == OpKind::Copy) {
    const auto& a = op.as<ir::CopyAttributes>();
    if (const Distribution* d = distribution_of(a.src.buffer)) give(a.dst.buffer, *d);
    if (const Distribution* d = distribution_of(a.dst.buffer)) give(a.src.buffer, *d);
  }
  if (op.kind == OpKind::Reduce) {
    const auto& a = op.as<ir::ReduceAttributes>();
    if (const Distribution* d = distribution_of(a.src.buffer)) give(a.dst.buffer, slice(*d, a.dim));
  }
  if (op.kind == OpKind::Parallel) {
    const size_t rank = op.as<ir::ParallelAttributes>().extents.size();
    const Distribution* iteration = nullptr;
    for_each_access(*op.regions[0], [&](const ir::Op&, const ir::Value* buffer, const auto& indices) {
      if (indices.size() == rank && distribution_of(buffer)) iteration = distribution_of(buffer);
    });
    if (!iteration) return changed;
    const Distribution d = *iteration;
    for_each_access(*op.regions[0], [&](const ir::Op&, const ir::Value* buffer, const auto& indices) {
      if (!layouts_.contains(buffer)) return;
      if (const auto variables = variables_of(op, indices)) give(buffer, project(d, *variables));
    });
  }
  return changed;
}

}  // namespace tilewright::plan::gpu
