// Stores past the caches, for results that are too large to be found in a cache again.
//
// Cost rule: an ordinary store of a line first reads it, so writing past the caches saves a third of the traffic of a
// copy; it costs a later reader the caches. It is done when the tensor is larger than kStreamAbove, is written only,
// and nothing in the kernel is a product (whose arithmetic hides the stores and whose result is read again soon).
#include <fmt/format.h>

#include "plan/cpu/liveness.h"
#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

constexpr int64_t kStreamAbove = int64_t{16} << 20;  ///< bytes of a tensor

/// Global tensors an operation writes.
std::vector<const Value*> written_tensors(const Op& op) {
  std::vector<const Value*> out;
  const auto add = [&](const Value* buffer) {
    if (buffer->type.space == ir::MemorySpace::Global) out.push_back(buffer);
  };
  if (op.kind == OpKind::Copy) add(op.as<ir::CopyAttributes>().dst.buffer);
  if (op.kind == OpKind::Parallel) {
    for_each_op(*op.regions[0], [&](Op& inner) {
      if (inner.kind == OpKind::Store) add(inner.as<ir::AccessAttributes>().buffer);
    });
  }
  return out;
}

}  // namespace

/// Until end_streams(), vectors of what `op` writes go past the caches where that pays.
void Lowering::begin_streams(const Op& op) {
  if (!gemm_buffers_.empty()) return;
  for (const Value* buffer : written_tensors(op)) {
    const int position = tile_.tensor_position(buffer);
    if (position < 0 || tile_.tensors[static_cast<size_t>(position)].direction != ir::Direction::Out) continue;
    if (effect_on(*grid_, buffer) == Effect::Reads) continue;
    const Placement& place = placement(buffer);
    Index size = number(bytes(place.storage));
    for (Index extent : place.extents) size = size * extent;
    const Index is_large = less(number(kStreamAbove), size);
    if (is_large.is_constant(0)) continue;
    streams_[place.pointer] = {is_large, arguments_.misalignment(position)};
    fact("streaming stores", fmt::format("of {} when it is larger than {} MiB", buffer->name, kStreamAbove >> 20),
         op.location);
  }
}

/// One vector, in either way: past the caches when the tensor is large and the address a multiple of the vector's size.
bool Lowering::store_streaming(const Placement& place, const Address& a, const ir::MemoryAttributes& memory, Value* v) {
  const auto found = streams_.find(place.pointer);
  const int64_t size = int64_t{lanes_.count} * bytes(memory.storage);
  if (found == streams_.end() || a.mask || a.step != Address::Step::Contiguous || size < 16) return false;
  // Lane loops go from 0 in steps of whole vectors: only where the row starts matters, and that is known before.
  const Index variable = vector_.indices().symbol(lanes_.variable);
  const Index start = memory.bytes - variable * bytes(memory.storage);
  if (uses_symbol(start, lanes_.variable)) return false;
  const Index is_aligned = equal(floormod(found->second.misalignment + start, size), number(0));
  ir::MemoryAttributes past = memory;
  past.streaming = true, past.align = static_cast<int>(size);
  b_.if_else(
      b_.index_condition(logical_and(found->second.is_large, is_aligned)),
      [&](const std::vector<Value*>&) { b_.vstore(a.pointer, past, v), b_.yield({}); },
      [&](const std::vector<Value*>&) {
        if (!options_.plant.is("streaming", 1)) b_.vstore(a.pointer, memory, v);  // planted: small results are lost
        b_.yield({});
      });
  return true;
}

}  // namespace tilewright::plan::cpu
