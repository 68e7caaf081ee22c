#include "plan/cpu/liveness.h"

#include <algorithm>

namespace tilewright::plan::cpu {
namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;
using ir::View;

/// Position of an operation: the regions around it, outermost first, with its index (or its ancestor's) in each.
using Path = std::vector<std::pair<const ir::Region*, size_t>>;

bool find_path(const ir::Region& region, const Op& wanted, Path& path) {
  for (size_t i = 0; i < region.ops.size(); ++i) {
    path.emplace_back(&region, i);
    if (region.ops[i] == &wanted) return true;
    for (const ir::Region* inner : region.ops[i]->regions) {
      if (find_path(*inner, wanted, path)) return true;
    }
    path.pop_back();
  }
  return false;
}

Effect written(const View& dst, const Value* buffer) {
  if (dst.buffer != buffer) return Effect::None;
  return is_whole(dst) ? Effect::Overwrites : Effect::Writes;
}

Effect moved(const View& src, const View& dst, const Value* buffer) {
  return src.buffer == buffer ? Effect::Reads : written(dst, buffer);
}

Effect effect_of_gemm(const ir::GemmAttributes& a, const Value* buffer) {
  if (a.a.buffer == buffer || a.b.buffer == buffer) return Effect::Reads;
  return a.accumulate && a.c.buffer == buffer ? Effect::Reads : written(a.c, buffer);
}

Effect effect_of_parallel(const Op& op, const Value* buffer) {
  Effect out = Effect::None;
  for_each_op(*op.regions[0], [&](Op& inner) {
    const Effect effect = effect_on(inner, buffer);
    if (effect == Effect::Reads || out == Effect::None) out = effect;
  });
  if (out != Effect::Writes) return out;
  const bool all = std::ranges::any_of(op.regions[0]->ops, [&](const Op* inner) {
    return inner->kind == OpKind::Store && inner->as<ir::AccessAttributes>().buffer == buffer &&
           is_own_element(inner->as<ir::AccessAttributes>(), op);
  });
  return all ? Effect::Overwrites : Effect::Writes;
}

Effect effect_of_regions(const Op& op, const Value* buffer) {
  Effect out = Effect::None;
  for (const ir::Region* region : op.regions) {
    for (const Op* inner : region->ops) {
      const Effect effect = effect_on(*inner, buffer);
      if (effect == Effect::Reads) return effect;
      if (effect != Effect::None) out = Effect::Writes;
    }
  }
  return out;
}

}  // namespace

bool is_whole(const View& v) {
  return v.slices.size() == v.buffer->type.shape.size() && v.extents() == v.buffer->type.shape;
}

bool is_own_element(const ir::AccessAttributes& access, const Op& parallel) {
  if (access.buffer->type.shape != parallel.as<ir::ParallelAttributes>().extents) return false;
  for (size_t d = 0; d < access.indices.size(); ++d) {
    if (access.indices[d].symbol() != parallel.regions[0]->arguments[d]) return false;
  }
  return true;
}

Effect effect_on(const Op& op, const Value* buffer) {
  switch (op.kind) {
    case OpKind::For:
    case OpKind::Pipelined:
    case OpKind::If:
    case OpKind::While:
    case OpKind::Grid: return effect_of_regions(op, buffer);
    case OpKind::Parallel: return effect_of_parallel(op, buffer);
    case OpKind::Alloc: return op.result() == buffer ? Effect::Overwrites : Effect::None;
    case OpKind::Fill: return written(op.as<ir::FillAttributes>().dst, buffer);
    case OpKind::Copy: return moved(op.as<ir::CopyAttributes>().src, op.as<ir::CopyAttributes>().dst, buffer);
    case OpKind::Gemm: return effect_of_gemm(op.as<ir::GemmAttributes>(), buffer);
    case OpKind::Reduce: {
      const auto& a = op.as<ir::ReduceAttributes>();
      return a.accumulate && a.dst.buffer == buffer ? Effect::Reads : moved(a.src, a.dst, buffer);
    }
    case OpKind::ReduceArg: {
      const auto& a = op.as<ir::ReduceArgAttributes>();
      const Effect effect = moved(a.src, a.value, buffer);
      return effect == Effect::None ? written(a.index, buffer) : effect;
    }
    case OpKind::Scan: return moved(op.as<ir::ScanAttributes>().src, op.as<ir::ScanAttributes>().dst, buffer);
    case OpKind::AtomicTile: {
      const auto& a = op.as<ir::AtomicTileAttributes>();
      return a.src.buffer == buffer || a.dst.buffer == buffer ? Effect::Reads : Effect::None;
    }
    case OpKind::ArriveLast:
      return op.as<ir::ArriveLastAttributes>().counter.buffer == buffer ? Effect::Reads : Effect::None;
    case OpKind::Atomic: return op.as<ir::AtomicAttributes>().buffer == buffer ? Effect::Reads : Effect::None;
    case OpKind::Load: return op.as<ir::AccessAttributes>().buffer == buffer ? Effect::Reads : Effect::None;
    case OpKind::Store: return op.as<ir::AccessAttributes>().buffer == buffer ? Effect::Writes : Effect::None;
    default: return Effect::None;  // values only
  }
}

bool writes(const Op& op, const Value* buffer) {
  switch (op.kind) {
    case OpKind::Copy: return op.as<ir::CopyAttributes>().dst.buffer == buffer;
    case OpKind::Reduce: return op.as<ir::ReduceAttributes>().dst.buffer == buffer;
    case OpKind::Parallel: {
      bool found = false;
      for_each_op(*op.regions[0], [&](Op& inner) {
        found |= inner.kind == OpKind::Store && inner.as<ir::AccessAttributes>().buffer == buffer;
      });
      return found;
    }
    default: return effect_on(op, buffer) != Effect::None;
  }
}

bool updates_in_place(const Op& op, const Value* buffer) {
  if (op.kind != OpKind::Parallel) return false;
  bool replaced = false, read_after = false, nested = false;
  for (const Op* inner : op.regions[0]->ops) {
    nested |= !inner->regions.empty();
    if (effect_on(*inner, buffer) == Effect::Reads) read_after |= replaced;
    if (inner->kind == OpKind::Store && inner->as<ir::AccessAttributes>().buffer == buffer) {
      if (!is_own_element(inner->as<ir::AccessAttributes>(), op)) return false;
      replaced = true;
    }
  }
  return replaced && !read_after && !nested;
}

bool is_live_after(const Op& grid, const Op& op, const Value* buffer) {
  Path path;
  if (!find_path(*grid.regions[0], op, path)) return true;
  for (size_t level = path.size(); level-- > 0;) {
    const auto& [region, position] = path[level];
    bool is_overwritten = false;
    const auto scan = [&](size_t from, size_t to) {
      for (size_t i = from; i < to && !is_overwritten; ++i) {
        const Effect effect = effect_on(*region->ops[i], buffer);
        if (effect == Effect::Reads) return true;
        is_overwritten = effect == Effect::Overwrites;
      }
      return false;
    };
    if (scan(position + 1, region->ops.size())) return true;
    if (is_overwritten) return false;
    const OpKind around = region->parent ? region->parent->kind : OpKind::Grid;
    if (around == OpKind::While && effect_of_regions(*region->parent, buffer) == Effect::Reads) return true;
    if ((around == OpKind::For || around == OpKind::Pipelined) && scan(0, position + 1)) return true;
  }
  return false;
}

}  // namespace tilewright::plan::cpu
