// A product whose tile is only copied to a tensor afterwards stores its last sums there itself.
#include "plan/cpu/gemm_lowering.h"
#include "transform/uses.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::OpKind;
using ir::Type;
using ir::Value;

/// Uses the next operation when it copies all of C, which nothing else mentions, to a tensor of C's type; the rows and
/// columns it drops must be those that are not live here.
void GemmLowering::find_target() {
  if (!next_ || next_->kind != OpKind::Copy || attributes_.accumulate || !l_.options_.fuse) return;
  const auto& copy = next_->as<ir::CopyAttributes>();
  const Value* c = attributes_.c.buffer;
  if (copy.src.buffer != c || copy.src.extents() != c->type.shape || copy.src.slices.size() != 2) return;
  if (copy.dst.buffer->type.space != ir::MemorySpace::Global || copy.dst.buffer->type.dtype != compute_) return;
  if (copy.dst.buffer == attributes_.a.buffer || copy.dst.buffer == attributes_.b.buffer) return;
  if (attributes_.c.slices.size() != 2 || attributes_.c.extents() != c->type.shape) return;
  const auto uses = transform::buffer_uses(*l_.grid_->regions[0]);
  if (const auto found = uses.find(c); found == uses.end() || found->second.size() != 2) return;
  const Operand to = operand(copy.dst, true);
  if (to.holds || !to.depth_stride.is_constant(bytes(compute_))) return;
  if (to.width_valid != live_rows_ || to.depth_valid != live_columns_) return;
  if (!repeats_last_row_ && !floormod(live_rows_, tile_.rows).is_constant(0)) return;
  target_ = {.is_used = true, .place = to.place, .base = to.base, .pitch = to.width_stride};
  l_.fact("gemm C", "the last sums go from registers to the tensor", op_.location);
}

/// The tensor in the last depth block, C's tile before.
void GemmLowering::open_target(Index k0, Index depth) {
  Value* tensor = b_.offset(target_.place->pointer, target_.base);
  if (k0.constant()) {
    target_.pointer = tensor, target_.step = target_.pitch;
    return;
  }
  const int64_t late = l_.options_.plant.is("gemm_target", 1) ? -1 : 0;  // planted: the last block goes to C's tile
  const ir::Op* chosen = b_.if_else(
      b_.index_condition(less_equal(depth_, k0 + depth + late)),
      [&](const std::vector<Value*>&) {
        b_.yield({tensor, b_.index_value(target_.pitch)});
      },
      [&](const std::vector<Value*>&) {
        b_.yield({c_->pointer, b_.index_value(c_->strides[0])});
      },
      {Type::pointer(ir::MemorySpace::Global), Type::scalar(DType::I64)});
  target_.pointer = chosen->results[0], target_.step = l_.vector_.indices().symbol(chosen->results[1]);
}

}  // namespace tilewright::plan::cpu
