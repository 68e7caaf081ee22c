// Rings of shared-memory stages filled by cp.async: the copies of a `pipelined` loop run `stages - 1` iterations ahead
// of their use.
//
// Iteration k waits for its own group, meets the others at a barrier (everyone's copies have landed; everyone has left
// the stage used at k - 1), issues the copies of k + stages - 1 into that stage, and computes. One group is committed
// an iteration, empty past the end, so that counting groups is counting iterations.
#include <fmt/format.h>

#include <algorithm>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::MemorySpace;
using ir::OpKind;
using ir::thread::Op;

namespace {

bool is_zero(const ir::Value* v) {
  if (!v->def || v->def->kind != OpKind::Constant) return false;
  const auto& c = v->def->as<ir::ConstantAttributes>();
  return c.real == 0 && c.integer == 0;
}

/// True when `op` itself reads or writes `tile`.
bool names(const ir::Op& op, const ir::Value* tile) {
  const auto any = [&](std::initializer_list<const ir::View*> views) {
    return std::ranges::any_of(views, [&](const ir::View* v) { return v->buffer == tile; });
  };
  switch (op.kind) {
    case OpKind::Fill: return any({&op.as<ir::FillAttributes>().dst});
    case OpKind::Copy: return any({&op.as<ir::CopyAttributes>().src, &op.as<ir::CopyAttributes>().dst});
    case OpKind::Gemm: {
      const auto& a = op.as<ir::GemmAttributes>();
      return any({&a.a, &a.b, &a.c});
    }
    case OpKind::Reduce: return any({&op.as<ir::ReduceAttributes>().src, &op.as<ir::ReduceAttributes>().dst});
    case OpKind::ReduceArg: {
      const auto& a = op.as<ir::ReduceArgAttributes>();
      return any({&a.src, &a.value, &a.index});
    }
    case OpKind::Scan: return any({&op.as<ir::ScanAttributes>().src, &op.as<ir::ScanAttributes>().dst});
    case OpKind::AtomicTile:
      return any({&op.as<ir::AtomicTileAttributes>().src, &op.as<ir::AtomicTileAttributes>().dst});
    case OpKind::Load:
    case OpKind::Store: return op.as<ir::AccessAttributes>().buffer == tile;
    case OpKind::Atomic: return op.as<ir::AtomicAttributes>().buffer == tile;
    default: return false;
  }
}
bool touches_below(const ir::Op& op, const ir::Value* tile) {
  if (names(op, tile)) return true;
  return std::ranges::any_of(op.regions, [&](const ir::Region* r) {
    return std::ranges::any_of(r->ops, [&](const ir::Op* inner) { return touches_below(*inner, tile); });
  });
}

}  // namespace

/// Loops whose copies can run ahead, with as many stages as fit beside everything else.
void Lowering::find_async_rings() {
  if (!options_.async_copies || !options_.aligned || options_.wide_indices) return;
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Pipelined || !op->operands.empty()) continue;
    const int stages = std::min(op->as<ir::PipelinedAttributes>().stages, 8);
    if (stages < 2) continue;
    AsyncRing ring{.stages = stages, .copies = {}};
    for (const ir::Op* inner : op->regions[0]->ops)
      if (inner->kind == OpKind::Copy && can_run_ahead(*op, *inner)) ring.copies.push_back(inner);
    if (ring.copies.empty()) continue;
    for (const ir::Op* copy : ring.copies) async_stages_[copy->as<ir::CopyAttributes>().dst.buffer] = stages;
    async_rings_.emplace(op, std::move(ring));
  }
}

bool Lowering::can_run_ahead(const ir::Op& loop, const ir::Op& copy) const {
  const auto& a = copy.as<ir::CopyAttributes>();
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  if (src->type.space != MemorySpace::Global || dst->type.space != MemorySpace::Shared || dst->type.rank() == 0 ||
      src->type.dtype != dst->type.dtype || !is_whole(a.dst) || written_globals_.contains(src))
    return false;
  if (!copy.operands.empty() && !is_zero(copy.operands[0])) return false;
  const int piece = 16 / bytes(dst->type.dtype);
  const ir::Slice& last = a.src.slices.back();
  if (!last.keep || *dst->type.shape.back().constant() % piece != 0) return false;
  if (tile_.tensors[static_cast<size_t>(tile_.tensor_position(src))].direction == ir::Direction::Workspace)
    return false;
  const ir::LinearForm start = ir::linear_form(last.start);
  if (start.constant % piece != 0) return false;
  for (const auto& term : start.terms)
    if (term.coefficient % piece != 0) return false;
  // Addresses are known before the iteration runs.
  const ir::Region& body = *loop.regions[0];
  std::unordered_set<const ir::Value*> inside;
  ir::for_each_op(body, [&](ir::Op& op) {
    inside.insert(op.results.begin(), op.results.end());
    for (const ir::Region* r : op.regions) inside.insert(r->arguments.begin(), r->arguments.end());
  });
  bool known = true;
  for (const ir::Slice& s : a.src.slices)
    ir::for_each_symbol(s.start, [&](const ir::Value* v) { known &= !inside.contains(v); });
  if (!known) return false;
  // The tile lives in this loop only, is filled here only, and is not read before.
  for (const ir::Op* op : block_region().ops) {
    if (op != &loop && touches_below(*op, dst) && !is_below(*op, loop)) return false;
  }
  bool filled = false;
  for (const ir::Op* op : body.ops) {
    if (op == &copy) {
      filled = true;
    } else if (touches_below(*op, dst) && (!filled || writes_below(*op, dst))) {
      return false;
    }
  }
  int uses = 0, below = 0;
  for (const ir::Op* op : ops_) uses += names(*op, dst);
  ir::for_each_op(body, [&](ir::Op& op) { below += names(op, dst); });
  return uses == below;
}

/// True when `inner` is somewhere inside `outer`.
bool Lowering::is_below(const ir::Op& outer, const ir::Op& inner) {
  return std::ranges::any_of(outer.regions, [&](const ir::Region* r) {
    return std::ranges::any_of(r->ops, [&](const ir::Op* op) { return op == &inner || is_below(*op, inner); });
  });
}
bool Lowering::writes_below(const ir::Op& op, const ir::Value* tile) {
  bool writes = false;
  const auto look = [&](const ir::Op& o) {
    if (o.kind == OpKind::Store) writes |= o.as<ir::AccessAttributes>().buffer == tile;
    if (o.kind == OpKind::Copy) writes |= o.as<ir::CopyAttributes>().dst.buffer == tile;
    if (o.kind == OpKind::Gemm) writes |= o.as<ir::GemmAttributes>().c.buffer == tile;
    const bool other = o.kind != OpKind::Load && o.kind != OpKind::Store && o.kind != OpKind::Copy &&
                       o.kind != OpKind::Gemm && o.kind != OpKind::Reduce;
    writes |= other && names(o, tile);
    if (o.kind == OpKind::Reduce) writes |= o.as<ir::ReduceAttributes>().dst.buffer == tile;
  };
  look(op);
  for (const ir::Region* r : op.regions) ir::for_each_op(*r, [&](ir::Op& inner) { look(inner); });
  return writes;
}

bool Lowering::runs_ahead(const ir::Op& copy) const {
  return async_stages_.contains(copy.as<ir::CopyAttributes>().dst.buffer);
}

/// The address of the stage that iteration `k` uses.
Operand Lowering::stage_address(const ir::Value* tile, Operand k) {
  const SharedTile& t = shared_.at(tile);
  const int stages = async_stages_.at(tile);
  const Operand stage = b_.rem(Scalar::U32, k, stages);
  return b_.add(Scalar::U32, shared_base_, b_.mad(Scalar::U32, stage, t.stage_bytes, t.offset));
}

void Lowering::issue_copies(const ir::Op& loop, const AsyncRing& ring, Operand k) {
  const ir::Value* variable = loop.regions[0]->arguments[0];
  index_.push();
  index_.bind(variable, {k, 0});
  for (const ir::Op* copy : ring.copies) {
    const auto& a = copy->as<ir::CopyAttributes>();
    b_.line = copy->location.line;
    SharedTile tile = shared_.at(a.dst.buffer);
    tile.base = stage_address(a.dst.buffer, k);
    issue_copy(a, tile);
  }
  index_.pop();
}

/// 16 bytes a thread at a time; bytes beyond the tensor become zero.
void Lowering::issue_copy(const ir::CopyAttributes& a, const SharedTile& tile) {
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  const int element = bytes(dst->type.dtype), piece = 16 / element;
  std::vector<int64_t> pieces;
  for (const ir::Index& n : dst->type.shape) pieces.push_back(*n.constant());
  pieces.back() /= piece;
  for_elements(pieces, nullptr, [&](const Coordinates& at, int, Operand) {
    Coordinates to = at;
    to.back() = {b_.mul(Scalar::U32, at.back().base, piece), 0};
    const Coordinates from = view_coordinates(a.src, to);
    Coordinates rows = from;  // the last coordinate is counted in bytes below
    rows.back() = {0, 0};
    const Operand column = coordinate(from.back());
    const Operand left = b_.max(Scalar::S32, b_.sub(Scalar::S32, index_.value(src->type.shape.back()), column), 0);
    Operand exists = b_.compare(Compare::Ge, Scalar::S32, column, 0);
    for (size_t d = 0; d + 1 < rows.size(); ++d) exists = b_.logical_and(exists, inside_dimension(src, from[d], d));
    const Operand count = b_.mul(Scalar::S32, b_.min(Scalar::S32, left, piece), element);
    int shared_offset = 0, global_offset = 0;
    Operand target = shared_address(tile, dst->type, to, shared_offset);
    target = b_.add(Scalar::U32, target, shared_offset);
    Operand source = global_address(tile_.tensor_position(src), from, global_offset);
    source = b_.add(Scalar::S64, source, global_offset);
    b_.emit(Op::CpAsync, {},
            {b_.in_register(target), b_.in_register(source, Scalar::B64), b_.select(Scalar::S32, exists, count, 0)},
            {16});
  });
}

void Lowering::pipelined_async(const ir::Op& o, const AsyncRing& ring) {
  const ir::Region& body = *o.regions[0];
  const Operand count = index_.value(o.as<ir::PipelinedAttributes>().count);
  fact("pipelined", fmt::format("{} copies by cp.async, {} stages", ring.copies.size(), ring.stages), o.location);
  std::vector<const ir::Value*> tiles;
  for (const ir::Op* copy : ring.copies) tiles.push_back(copy->as<ir::CopyAttributes>().dst.buffer);
  accesses({}, Buffers(tiles.begin(), tiles.end()));  // an earlier run of the loop may still be read
  const auto reads_before = pending_reads_, writes_before = pending_writes_;
  for (int s = 0; s + 1 < ring.stages; ++s) {
    b_.if_then(b_.compare(Compare::Lt, Scalar::S32, s, count), [&] { issue_copies(o, ring, s); });
    b_.emit(Op::CpAsyncCommit);
  }
  b_.for_range(0, count, 1, [&](Reg k) {
    if (!options_.plant.is("gpu_async", 1))  // plant 1: stages are used before they have landed
      b_.emit(Op::CpAsyncWait, {}, {}, {ring.stages - 2});
    if (!options_.plant.is("gpu_async", 2)) barrier();  // plant 2: others' copies are not waited for
    const Operand ahead = b_.add(Scalar::S32, k, ring.stages - 1);
    b_.if_then(b_.compare(Compare::Lt, Scalar::S32, ahead, count), [&] { issue_copies(o, ring, ahead); });
    b_.emit(Op::CpAsyncCommit);
    index_.push();
    index_.bind(body.arguments[0], {k, 0});
    define(body.arguments[0], b_.convert(Scalar::S64, Scalar::S32, k));
    for (const ir::Value* tile : tiles) shared_.at(tile).base = stage_address(tile, k);
    region(body);
    index_.pop();
  });
  for (const ir::Value* tile : tiles) shared_.at(tile).base = 0;
  after_loop(reads_before, writes_before);
  pending_reads_.insert(tiles.begin(), tiles.end());
}

}  // namespace tilewright::plan::gpu
