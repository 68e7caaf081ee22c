// Which part of a gemm's C tile anything reads: rows and columns that only lead to dropped writes need no work.
#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

bool is_whole(const ir::View& v) {
  return v.slices.size() == v.buffer->type.shape.size() && v.extents() == v.buffer->type.shape;
}

/// Every use of a tile must be element-wise along the dimension and end in writes that stop at one limit.
class LiveExtent {
 public:
  LiveExtent(const Value* tile, int dim) : tile_(tile), dim_(static_cast<size_t>(dim)) {}

  bool visit(const ir::Region& region) {
    for (const Op* op : region.ops) {
      if (!visit(*op)) return false;
    }
    return true;
  }
  /// The write's start and the size of the tensor it stops at.
  Index start, size;

 private:
  bool stops_at(Index at, Index limit) {
    if (start && !(start == at && size == limit)) return false;
    start = at, size = limit;
    return true;
  }

  bool visit(const Op& op) {
    switch (op.kind) {
      case OpKind::Parallel: return visit_parallel(op);
      case OpKind::Fill:
        return op.as<ir::FillAttributes>().dst.buffer != tile_ || is_whole(op.as<ir::FillAttributes>().dst);
      case OpKind::Gemm: {
        const auto& a = op.as<ir::GemmAttributes>();
        return a.a.buffer != tile_ && a.b.buffer != tile_ && (a.c.buffer != tile_ || is_whole(a.c));
      }
      case OpKind::Copy: return visit_copy(op.as<ir::CopyAttributes>());
      case OpKind::Reduce:
        return op.as<ir::ReduceAttributes>().src.buffer != tile_ && op.as<ir::ReduceAttributes>().dst.buffer != tile_;
      case OpKind::ReduceArg: return op.as<ir::ReduceArgAttributes>().src.buffer != tile_;
      case OpKind::Scan: return op.as<ir::ScanAttributes>().src.buffer != tile_;
      case OpKind::AtomicTile: return op.as<ir::AtomicTileAttributes>().src.buffer != tile_;
      case OpKind::Load:
      case OpKind::Store: return op.as<ir::AccessAttributes>().buffer != tile_;
      default: break;
    }
    for (const ir::Region* r : op.regions) {
      if (!visit(*r)) return false;
    }
    return true;
  }

  bool visit_copy(const ir::CopyAttributes& a) {
    if (a.dst.buffer == tile_) return false;
    if (a.src.buffer != tile_) return true;
    if (!is_whole(a.src) || a.dst.buffer->type.space != ir::MemorySpace::Global) return false;
    size_t kept = 0;
    for (size_t d = 0; d < a.dst.slices.size(); ++d) {
      if (a.dst.slices[d].keep && kept++ == dim_) return stops_at(a.dst.slices[d].start, a.dst.buffer->type.shape[d]);
    }
    return false;
  }

  /// Element-wise over the whole tile; other stores must be writes to global memory at start + variable.
  bool visit_parallel(const Op& op) {
    const auto& extents = op.as<ir::ParallelAttributes>().extents;
    const ir::Region& body = *op.regions[0];
    bool touches = false;
    for_each_op(body, [&](Op& inner) {
      if (inner.kind == OpKind::Load || inner.kind == OpKind::Store)
        touches |= inner.as<ir::AccessAttributes>().buffer == tile_;
    });
    if (!touches) return true;
    if (extents != tile_->type.shape) return false;
    bool fine = true;
    for_each_op(body, [&](Op& inner) {
      if (inner.kind == OpKind::Load) {
        const auto& a = inner.as<ir::AccessAttributes>();
        fine &= a.buffer != tile_ || is_own_element(a, body);
      } else if (inner.kind == OpKind::Store) {
        const auto& a = inner.as<ir::AccessAttributes>();
        fine &= a.buffer == tile_ ? is_own_element(a, body) : is_clipped_write(a, body);
      } else if (!(info(inner.kind).traits & ir::kPure) && inner.kind != OpKind::Yield) {
        fine = false;
      }
    });
    return fine;
  }

  static bool is_own_element(const ir::AccessAttributes& a, const ir::Region& body) {
    for (size_t d = 0; d < a.indices.size(); ++d) {
      if (a.indices[d].symbol() != body.arguments[d]) return false;
    }
    return true;
  }

  bool is_clipped_write(const ir::AccessAttributes& a, const ir::Region& body) {
    if (a.buffer->type.space != ir::MemorySpace::Global) return false;
    const Value* variable = body.arguments[dim_];
    for (size_t d = 0; d < a.indices.size(); ++d) {
      if (!uses_symbol(a.indices[d], variable)) continue;
      const Index at = a.indices[d] - a.indices[d].node()->context->symbol(variable);
      return !uses_symbol(at, variable) && stops_at(at, a.buffer->type.shape[d]);
    }
    return false;
  }

  const Value* tile_;
  size_t dim_;
};

}  // namespace

Index Lowering::live_extent(const Op& gemm, int dim, Index extent) {
  const ir::View& c = gemm.as<ir::GemmAttributes>().c;
  if (!is_whole(c) || c.slices.size() != 2) return extent;
  LiveExtent live(c.buffer, dim);
  if (!live.visit(*grid_->regions[0]) || !live.start) return extent;
  bool known = true;
  for_each_symbol(live.start, [&](const Value* v) { known &= values_.contains(v) || arguments_.index_of(v); });
  if (!known) return extent;
  const Index start = map(live.start), size = map(live.size);
  if (bounds_.is_never_less(size, start + extent)) return extent;
  if (!bounds_.is_never_less(size, start)) return extent;
  return min(extent, size - start);
}

bool Lowering::is_written(const Value* buffer) const {
  const int position = tile_.tensor_position(buffer);
  for (const auto& [x, y] : tile_.aliases) {
    if (x == position || y == position) return true;
  }
  if (tile_.tensors[static_cast<size_t>(position)].direction == ir::Direction::In) return false;
  bool written = false;
  for_each_op(*grid_->regions[0], [&](Op& op) {
    const auto is = [&](const ir::View& v) { written |= v.buffer == buffer; };
    switch (op.kind) {
      case OpKind::Store: written |= op.as<ir::AccessAttributes>().buffer == buffer; break;
      case OpKind::Atomic: written |= op.as<ir::AtomicAttributes>().buffer == buffer; break;
      case OpKind::Copy: is(op.as<ir::CopyAttributes>().dst); break;
      case OpKind::Fill: is(op.as<ir::FillAttributes>().dst); break;
      case OpKind::Gemm: is(op.as<ir::GemmAttributes>().c); break;
      case OpKind::Reduce: is(op.as<ir::ReduceAttributes>().dst); break;
      case OpKind::Scan: is(op.as<ir::ScanAttributes>().dst); break;
      case OpKind::ReduceArg:
        is(op.as<ir::ReduceArgAttributes>().value), is(op.as<ir::ReduceArgAttributes>().index);
        break;
      case OpKind::AtomicTile: is(op.as<ir::AtomicTileAttributes>().dst); break;
      default: break;
    }
  });
  return written;
}

}  // namespace tilewright::plan::cpu
