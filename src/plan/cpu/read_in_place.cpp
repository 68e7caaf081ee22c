// Row tiles that are only copies of a global tensor are read where they came from, and the next block's rows are
// fetched by the pass that has the most to compute.
#include <algorithm>

#include "plan/cpu/liveness.h"
#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

/// One row: re-reading it from the tensor hits the caches as well as a tile would.
bool is_row(const ir::Type& tile) {
  return !tile.shape.empty() &&
         std::all_of(tile.shape.begin(), tile.shape.end() - 1, [](Index extent) { return extent.is_constant(1); });
}

bool keeps_values(DType from, DType to) { return from == to || compute_type(from) == to; }

/// Whether an operation may read `tile` from somewhere else.
bool can_read_elsewhere(const Op& op) {
  return op.kind == OpKind::Parallel || op.kind == OpKind::Copy || op.kind == OpKind::Reduce;
}

}  // namespace

const Placement& Lowering::source_of(const Value* buffer) const {
  const auto found = sources_.find(buffer);
  return found == sources_.end() || replaced_.contains(buffer) ? placement(buffer) : found->second;
}

/// The tile of `copy`, read as the tensor it comes from; nothing when an element may lie outside or change.
std::optional<Placement> Lowering::view_as_tile(const ir::CopyAttributes& copy) const {
  const Value *from = copy.src.buffer, *tile = copy.dst.buffer;
  if (from->type.space != ir::MemorySpace::Global || tile->type.space == ir::MemorySpace::Global) return {};
  const int position = tile_.tensor_position(from);
  if (position < 0 || tile_.tensors[static_cast<size_t>(position)].optional || is_written(from)) return {};
  if (!is_whole(copy.dst) || !is_row(tile->type) || gemm_buffers_.contains(tile)) return {};
  if (!copy.src.slices.back().keep || !keeps_values(from->type.dtype, tile->type.dtype)) return {};
  const Placement& place = placement(from);
  Placement out{.pointer = place.pointer, .extents = map(tile->type.shape), .storage = place.storage};
  Index bytes = number(0);
  for (size_t d = 0; d < copy.src.slices.size(); ++d) {
    const ir::Slice& slice = copy.src.slices[d];
    const Index start = map(slice.start), extent = map(slice.extent);
    if (!bounds_.is_never_negative(start) || !bounds_.is_never_less(place.extents[d], start + extent)) return {};
    bytes = bytes + start * place.strides[d];
    if (slice.keep) out.strides.push_back(place.strides[d]);
  }
  out.base = bytes;
  return out;
}

/// Defers the copy at `position`: until the tile is overwritten, its readers read the tensor.
bool Lowering::read_in_place(const ir::Region& region, size_t position) {
  const Op& op = *region.ops[position];
  const Value* tile = op.as<ir::CopyAttributes>().dst.buffer;
  const Op* end = nullptr;
  for (size_t i = position + 1; i < region.ops.size() && !end; ++i) {
    const Op& user = *region.ops[i];
    bool touches = effect_on(user, tile) != Effect::None;
    if (!touches) continue;
    // An update in place reads every old element before it replaces it.
    const bool replaces = effect_on(user, tile) == Effect::Overwrites || updates_in_place(user, tile);
    if (replaces) {
      end = &user;
    } else if (!can_read_elsewhere(user) || writes(user, tile)) {
      return false;
    }
  }
  if (!end && is_live_after(*grid_, *region.ops.back(), tile)) return false;
  auto place = view_as_tile(op.as<ir::CopyAttributes>());
  if (!place) return false;
  sources_[tile] = std::move(*place);
  source_ends_[end ? end : region.ops.back()].push_back(tile);
  if (const Op* pass = busiest_pass(region, position)) prefetched_at_[pass] = &op.as<ir::CopyAttributes>().src;
  fact("copy", "left out: " + tile->name + " is read in place from " + op.as<ir::CopyAttributes>().src.buffer->name,
       op.location);
  return true;
}

/// The readers after `op` see the tile again where `op` has overwritten it.
void Lowering::end_sources(const Op& op) {
  const auto found = source_ends_.find(&op);
  if (found == source_ends_.end()) return;
  if (!options_.plant.is("read_in_place", 1)) {  // planted: readers after an update still see the tensor
    for (const Value* tile : found->second) sources_.erase(tile);
  }
  source_ends_.erase(found);
}

/// The pass over the tile's elements that computes most, by its first member: there memory has time to answer. Of equal
/// ones the last, which also stores.
const Op* Lowering::busiest_pass(const ir::Region& region, size_t position) const {
  const auto& shape = region.ops[position]->as<ir::CopyAttributes>().dst.buffer->type.shape;
  const Op* best = nullptr;
  int most = 0;
  for (size_t i = position + 1; i < region.ops.size(); ++i) {
    const FusedGroup group = find_group(region, i);
    if (group.members.empty() || group.extents != shape) continue;
    int cost = 0;
    for (const Op* op : group.members) cost += arithmetic(*op);
    if (cost >= most) most = cost, best = group.members.front();
    i += group.consumed - 1;
  }
  return best;
}

}  // namespace tilewright::plan::cpu
