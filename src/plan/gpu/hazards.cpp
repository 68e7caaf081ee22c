// What was written or read since the last barrier, and where a barrier has to stand.
#include <algorithm>

#include "plan/gpu/lowering.h"
#include "plan/gpu/op_views.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;

bool Lowering::is_tracked(const ir::Value* buffer) const {
  if (shared_.contains(buffer)) return true;
  return buffer->type.space == ir::MemorySpace::Global && written_globals_.contains(buffer) &&
         (read_globals_.contains(buffer) || rewritten_globals_.contains(buffer));
}
bool Lowering::read_needs_barrier(const ir::Value* buffer) const {
  const bool forgets = options_.plant.is("gpu_barriers", 1);  // plant 1: what was written is read without a barrier
  return pending_writes_.contains(buffer) && !forgets;
}
bool Lowering::write_needs_barrier(const ir::Value* buffer) const {
  const bool forgets = options_.plant.is("gpu_barriers", 2);  // plant 2: what is being read is overwritten
  return pending_writes_.contains(buffer) || (pending_reads_.contains(buffer) && !forgets);
}
void Lowering::accesses(const Buffers& loaded, const Buffers& stored) {
  if (std::ranges::any_of(loaded, [&](const ir::Value* v) { return read_needs_barrier(v); }) ||
      std::ranges::any_of(stored, [&](const ir::Value* v) { return write_needs_barrier(v); }))
    barrier();
  for (const ir::Value* v : loaded)
    if (is_tracked(v)) pending_reads_.insert(v);
  for (const ir::Value* v : stored)
    if (is_tracked(v)) pending_writes_.insert(v);
}
void Lowering::barrier() {
  if (cluster_ > 1) throw NoCluster{"its threads share a tile, and a barrier would have to span the blocks"};
  b_.emit(Op::Barrier, {}, {barrier_, threads_});
  pending_reads_.clear();
  pending_writes_.clear();
}
void Lowering::enter_loop(const ir::Region& body) {
  if (options_.plant.is("gpu_barriers", 3)) return;  // plant 3: iterations do not know of one another
  // What the body leaves pending is pending at its head, too.
  const std::function<void(const ir::Region&)> mark = [&](const ir::Region& r) {
    for (const ir::Op* op : r.ops) {
      const Views views = views_of(*op);
      for (const ir::View* v : views.reads)
        if (is_tracked(v->buffer)) pending_reads_.insert(v->buffer);
      for (const ir::View* v : views.writes)
        if (is_tracked(v->buffer)) pending_writes_.insert(v->buffer);
      if (op->kind == OpKind::Load && is_tracked(op->as<ir::AccessAttributes>().buffer))
        pending_reads_.insert(op->as<ir::AccessAttributes>().buffer);
      if (op->kind == OpKind::Store && is_tracked(op->as<ir::AccessAttributes>().buffer))
        pending_writes_.insert(op->as<ir::AccessAttributes>().buffer);
      if (op->kind == OpKind::Atomic && is_tracked(op->as<ir::AtomicAttributes>().buffer))
        pending_writes_.insert(op->as<ir::AtomicAttributes>().buffer);
      for (const ir::Region* inner : op->regions) mark(*inner);
    }
  };
  mark(body);
}

}  // namespace tilewright::plan::gpu
