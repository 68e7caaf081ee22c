// Rings of shared-memory stages and the tensor maps that fill them.
#include "plan/gpu/hopper_form.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;
using ir::thread::Param;

namespace {

int driver_type(DType dtype) {
  switch (dtype) {
    case DType::F16: return 6;
    case DType::BF16: return 9;
    case DType::F32: return 7;
    case DType::I32: return 4;
    default: return bytes(dtype) == 1 ? 0 : 1;
  }
}

}  // namespace

bool HopperForm::uses(const ir::Op& op, const ir::Value* tile) {
  if (op.kind == OpKind::Gemm) {
    const auto& a = op.as<ir::GemmAttributes>();
    if (a.a.buffer == tile || a.b.buffer == tile) return true;
  }
  for (const ir::Region* r : op.regions)
    for (const ir::Op* inner : r->ops)
      if (uses(*inner, tile)) return true;
  return false;
}

void HopperForm::find_rings() {
  const std::function<void(const ir::Region&, int)> walk = [&](const ir::Region& region, int stages) {
    for (const ir::Op* op : region.ops) {
      if (op->kind == OpKind::Copy && copies_.contains(op->as<ir::CopyAttributes>().dst.buffer))
        add_to_ring(region, *op, stages);
      for (const ir::Region* r : op->regions)
        walk(*r, op->kind == OpKind::Pipelined ? std::max(2, op->as<ir::PipelinedAttributes>().stages)
                 : op->kind == OpKind::For     ? 2
                                               : stages);
    }
  };
  walk(l_.block_region(), 1);
  for (Ring& ring : rings_) {
    for (Staged& t : ring.tiles) {
      t.offset = ring.stage_bytes;
      ring.stage_bytes += (t.size() + 1023) / 1024 * 1024;
    }
  }
}

void HopperForm::add_to_ring(const ir::Region& region, const ir::Op& copy, int stages) {
  const ir::Value* tile = copy.as<ir::CopyAttributes>().dst.buffer;
  const ir::Op *first = nullptr, *last = nullptr;
  for (const ir::Op* op : region.ops)
    if (uses(*op, tile)) first = first ? first : op, last = op;
  if (!first) throw No{fmt::format("shared tile {} is not used where it is filled", tile->name)};
  Staged s;
  s.buffer = tile;
  s.copy = &copy;
  s.rows = static_cast<int>(extent_of(tile, 0));
  s.inner = static_cast<int>(extent_of(tile, 1));
  s.element = bytes(tile->type.dtype);
  const int row = s.inner * s.element;
  s.span = row % 128 == 0 ? 128 : row % 64 == 0 ? 64 : 32;
  s.swizzle = s.span == 128 ? Swizzle::B128 : s.span == 64 ? Swizzle::B64 : Swizzle::B32;
  for (Ring& ring : rings_) {
    if (ring.home == &region && ring.first_use == first && ring.last_use == last) {
      ring.tiles.push_back(s);
      return;
    }
  }
  Ring ring;
  ring.home = &region;
  ring.first_use = first;
  ring.last_use = last;
  ring.stages = stages;
  ring.tiles = {s};
  rings_.push_back(ring);
}

bool HopperForm::can_stage(const ir::Op& op) const {
  const auto& a = op.as<ir::CopyAttributes>();
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  if (!is_fragment(src) || !is_global(dst) || src->type.rank() != 2 || !l_.is_whole(a.src)) return false;
  if (dst->type.dtype != DType::F16 && dst->type.dtype != DType::BF16) return false;
  if (!is_float(src->type.dtype) || src->type.dtype == DType::F64 || extent_of(src, 1) % 64) return false;
  if (!(*l_.distribution_of(src) == wgmma_accumulator(extent_of(src, 0), extent_of(src, 1), groups_))) return false;
  int kept = 0;
  for (const ir::Slice& s : a.dst.slices) kept += s.keep;
  return kept == 2 && a.dst.slices.back().keep && dst->type.rank() <= 5;
}

void HopperForm::place_shared() {
  int barriers = 0;
  for (Ring& ring : rings_) barriers += 16 * ring.stages;
  const int limit = l_.gpu_.shared_bytes_per_block - barriers - 2048;
  const auto total = [&] {
    int n = 0;
    for (const Ring& ring : rings_) n += ring.stages * ring.stage_bytes;
    return n;
  };
  for (const ir::Op* op : l_.ops_)
    if (op->kind == OpKind::Copy && can_stage(*op))
      staging_bytes_ =
          std::max(staging_bytes_, static_cast<int>(extent_of(op->as<ir::CopyAttributes>().src.buffer, 0) *
                                                    extent_of(op->as<ir::CopyAttributes>().src.buffer, 1) * 2));
  while (total() + staging_bytes_ > limit) {
    Ring* largest = nullptr;
    for (Ring& ring : rings_)
      if (ring.stages > 2 && (!largest || ring.stages * ring.stage_bytes > largest->stages * largest->stage_bytes))
        largest = &ring;
    if (largest) {
      --largest->stages;
    } else if (staging_bytes_ > 0) {
      staging_bytes_ = 0;
    } else {
      throw No{fmt::format("{} bytes of stages", total())};
    }
  }
  prefetch_next_block(limit - total() - staging_bytes_);
  for (Ring& ring : rings_)
    ring.offset = l_.reserve_shared(int64_t{ring.stages} * ring.stage_bytes, 1024, l_.grid_.location);
  staging_ = l_.reserve_shared(staging_bytes_, 1024, l_.grid_.location);
  for (Ring& ring : rings_) ring.barriers = l_.reserve_shared(16 * ring.stages, 16, l_.grid_.location);
  scratch_ = l_.reserve_shared(16, 16, l_.grid_.location);
  if (!hands_blocks_) return;
  handed_.stages = 2;
  handed_.stage_bytes = 16;
  handed_.offset = l_.reserve_shared(2 * 16, 16, l_.grid_.location);
  handed_.barriers = l_.reserve_shared(2 * 16, 16, l_.grid_.location);
}

/// What a block loads once gets a second stage where it fits: the next block's is then on its way, and behind it the
/// first stages of its loops, while this one ends.
void HopperForm::prefetch_next_block(int bytes_left) {
  for (Ring& ring : rings_) {
    if (ring.home != &l_.block_region() || ring.stages > 1 || ring.stage_bytes + 16 > bytes_left) continue;
    ring.stages = 2;
    bytes_left -= ring.stage_bytes + 16;
  }
}

int HopperForm::map_for(const ir::View& view, int rows, int columns, Swizzle swizzle) {
  const ir::Value* tensor = view.buffer;
  const int position = l_.tile_.tensor_position(tensor);
  runtime::TensorMap m;
  m.pointer = static_cast<uint32_t>(l_.arguments_.pointer_of(position));
  m.data_type = driver_type(tensor->type.dtype);
  m.swizzle = static_cast<int>(swizzle);
  m.l2_promotion = 3;
  const auto& strides = l_.arguments_.strides(position);
  const auto one = runtime::constant(1);
  // Of an empty tensor nothing is read; its strides may be anything, and the copy engine takes only its own.
  runtime::Expression least = one;
  for (const ir::Index& n : tensor->type.shape)
    if (!n.constant())
      least = runtime::combine(runtime::ExpressionOp::Min, {least, l_.arguments_.expression(l_.arguments_.map(n))});
  bool inner = true, took_rows = false;
  for (size_t d = view.slices.size(); d-- > 0;) {
    const auto extent = l_.arguments_.expression(l_.arguments_.map(tensor->type.shape[d]));
    m.extents.push_back(runtime::combine(runtime::ExpressionOp::Max, {extent, one}));
    if (!inner) {
      // An axis of extent 1 may have any stride; the copy engine wants a multiple of 16.
      const auto pitch = runtime::combine(runtime::ExpressionOp::Mul, {l_.arguments_.expression(strides[d]),
                                                                       runtime::constant(bytes(tensor->type.dtype))});
      m.stride_bytes.push_back(
          runtime::combine(runtime::ExpressionOp::Select,
                           {runtime::combine(runtime::ExpressionOp::Gt,
                                             {runtime::combine(runtime::ExpressionOp::Mul, {extent, least}), one}),
                            pitch, runtime::constant(16)}));
    }
    uint32_t box = 1;
    if (view.slices[d].keep) {
      box = static_cast<uint32_t>(inner ? columns : took_rows ? 1 : rows);
      took_rows |= !inner;
    }
    m.box.push_back(box);
    m.element_strides.push_back(1);
    inner = false;
  }
  launch_.tensor_maps.push_back(std::move(m));
  return b_.param(fmt::format("map{}", launch_.tensor_maps.size() - 1), Param::Kind::TensorMap);
}

void HopperForm::declare_maps() {
  for (Ring& ring : rings_)
    for (Staged& t : ring.tiles)
      t.map = map_for(t.copy->as<ir::CopyAttributes>().src, t.rows, t.span / t.element, t.swizzle);
  if (staging_bytes_ == 0) return;
  for (const ir::Op* op : l_.ops_)
    if (op->kind == OpKind::Copy && can_stage(*op))
      store_maps_[op] = map_for(op->as<ir::CopyAttributes>().dst, 64, 64, Swizzle::B128);
}

/// The copy is never reached when an extent of `tensor` is 0: a loop around it, or the grid, is empty then.
bool HopperForm::is_unreached_when_empty(const ir::Op& copy, const ir::Value* tensor) const {
  const ir::Index zero = l_.tile_.indices().constant(0);
  const auto is_empty_without = [&](ir::Index count, const ir::Value* dimension) {
    const auto none = [&](const ir::Value* v) { return v == dimension ? zero : ir::Index(); };
    const auto left = ir::substitute(count, none, l_.tile_.indices()).constant();
    return left && *left <= 0;
  };
  return std::ranges::all_of(tensor->type.shape, [&](const ir::Index& extent) {
    if (extent.constant()) return true;
    if (!extent.symbol()) return false;
    for (const ir::Index& n : l_.grid_.as<ir::GridAttributes>().extents)
      if (is_empty_without(n, extent.symbol())) return true;
    for (const ir::Op* op = &copy; l_.homes_.contains(op); op = l_.homes_.at(op)->parent)
      if (op->kind == OpKind::Pipelined && is_empty_without(op->as<ir::PipelinedAttributes>().count, extent.symbol()))
        return true;
    return false;
  });
}

/// What moves the boxes of an empty tensor, whose map has one element that does not exist, beyond it.
Operand HopperForm::beyond_if_empty(const ir::Op& copy, const ir::Value* tensor) {
  if (is_unreached_when_empty(copy, tensor)) return 0;
  const uint64_t key = mix(1007, reinterpret_cast<uint64_t>(tensor));
  if (const Operand* known = l_.index_.find(key)) return *known;
  Operand exists = 1;
  for (const ir::Index& n : tensor->type.shape)
    if (!n.constant()) exists = b_.logical_and(exists, b_.compare(Compare::Gt, Scalar::S32, l_.index_.value(n), 0));
  const Operand out = b_.select(Scalar::S32, exists, 0, 1 << 30);
  l_.index_.remember(key, out);
  return out;
}

std::vector<Operand> HopperForm::coordinates(const ir::Op& copy, const ir::View& view, Operand rows, int64_t columns) {
  std::vector<Operand> out;
  bool inner = true;
  for (size_t d = view.slices.size(); d-- > 0;) {
    Affine a = l_.index_.affine(view.slices[d].start);
    Operand x = b_.add(Scalar::S32, a.base, a.offset + (inner ? columns : 0));
    if (inner) x = b_.add(Scalar::S32, x, beyond_if_empty(copy, view.buffer));
    if (!inner && view.slices[d].keep) x = b_.add(Scalar::S32, x, rows);
    out.push_back(b_.in_register(x));
    inner = false;
  }
  return out;
}

void HopperForm::begin_role() {
  const auto begin = [&](Ring& r) {
    r.stage = b_.copy_of(0);
    r.phase = b_.copy_of(0);
  };
  for (Ring& r : rings_) begin(r);
  if (hands_blocks_) begin(handed_);
}

void HopperForm::advance(Ring& r) {
  if (r.stages == 1) {
    b_.binary_into(r.phase, Op::Xor, Scalar::B32, r.phase, 1);
    return;
  }
  b_.binary_into(r.stage, Op::Add, Scalar::U32, r.stage, 1);
  const Operand wrapped = b_.compare(Compare::Eq, Scalar::U32, r.stage, r.stages);
  if (!l_.options_.plant.is("gpu_ring", 1))  // plant 1: the phase never turns
    b_.assign(r.phase, b_.bit_xor(Scalar::B32, r.phase, b_.select(Scalar::B32, wrapped, 1, 0)));
  b_.assign(r.stage, b_.select(Scalar::B32, wrapped, 0, r.stage));
}

void HopperForm::release(const Ring& r, Operand stage, Operand only_if) {
  const Operand barrier = b_.mad(Scalar::U32, stage, 16, shared(r.barriers + 8));
  const Operand guard = b_.logical_and(is_lane0_, only_if);
  ir::thread::Inst& inst = b_.emit(Op::MbarrierArrive, {}, {b_.in_register(barrier)});
  inst.guard = guard.reg;
}

const Staged& HopperForm::staged(const ir::Value* v, const Ring** ring) const {
  for (const Ring& r : rings_)
    for (const Staged& t : r.tiles)
      if (t.buffer == v) {
        *ring = &r;
        return t;
      }
  throw No{"an operand without a stage"};
}

}  // namespace tilewright::plan::gpu
