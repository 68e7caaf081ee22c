#include "plan/cpu/fused_group.h"

#include <algorithm>

namespace tilewright::plan::cpu {
namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;
using ir::View;

bool is_tile(const Value* buffer) {
  return buffer->type.space == ir::MemorySpace::Shared || buffer->type.space == ir::MemorySpace::Fragment;
}

bool is_whole(const View& v) {
  return v.slices.size() == v.buffer->type.shape.size() && v.extents() == v.buffer->type.shape;
}

void add(std::vector<Touch>& out, const View& v, bool is_write, bool own) {
  out.push_back({v.buffer, is_write, own && is_tile(v.buffer) && is_whole(v)});
}

bool parallel_touches(const Op& op, std::vector<Touch>& out) {
  const ir::Region& body = *op.regions[0];
  for (const Op* inner : body.ops) {
    if (inner->kind == OpKind::Load || inner->kind == OpKind::Store) {
      const auto& a = inner->as<ir::AccessAttributes>();
      bool own = is_tile(a.buffer) && a.indices.size() == body.arguments.size();
      for (size_t d = 0; own && d < a.indices.size(); ++d) own = a.indices[d].symbol() == body.arguments[d];
      out.push_back({a.buffer, inner->kind == OpKind::Store, own});
    } else if (!(info(inner->kind).traits & ir::kPure) && inner->kind != OpKind::Yield) {
      return false;
    }
  }
  return true;
}

/// The space an operation can join a group over; empty when it cannot.
std::vector<ir::Index> space_of(const Op& op) {
  switch (op.kind) {
    case OpKind::Parallel: return op.as<ir::ParallelAttributes>().extents;
    case OpKind::Copy: return op.as<ir::CopyAttributes>().dst.extents();
    case OpKind::Reduce: {
      const auto& a = op.as<ir::ReduceAttributes>();
      const auto extents = a.src.extents();
      return a.dim + 1 == static_cast<int>(extents.size()) && a.src.slices.back().keep ? extents
                                                                                       : std::vector<ir::Index>{};
    }
    default: return {};
  }
}

bool conflicts(const std::vector<Touch>& x, const std::vector<Touch>& y, bool own_is_fine) {
  for (const Touch& a : x) {
    for (const Touch& b : y) {
      if (a.buffer != b.buffer || (!a.is_write && !b.is_write)) continue;
      if (!own_is_fine || !a.is_own_element || !b.is_own_element) return true;
    }
  }
  return false;
}

/// A store must be to the member's own element of a tile, so that iterations keep apart whatever the order of members.
bool can_be_member(const Op& op, const std::vector<ir::Index>& extents) {
  if (extents.empty() || extents.size() > 3) return false;
  if (op.kind == OpKind::Copy)
    return op.as<ir::CopyAttributes>().dst.slices.back().keep && op.as<ir::CopyAttributes>().src.slices.back().keep;
  if (op.kind != OpKind::Parallel) return true;
  const ir::Region& body = *op.regions[0];
  return std::ranges::all_of(body.ops, [&](const Op* inner) {
    if (inner->kind != OpKind::Store && inner->kind != OpKind::Load)
      return inner->regions.empty() && inner->kind != OpKind::Alloc;
    const auto& a = inner->as<ir::AccessAttributes>();
    if (inner->kind == OpKind::Load) return true;
    return !a.indices.empty() && uses_symbol(a.indices.back(), body.arguments.back());
  });
}

}  // namespace

bool touches_of(const Op& op, std::vector<Touch>& out) {
  switch (op.kind) {
    case OpKind::Parallel: return parallel_touches(op, out);
    case OpKind::Copy:
      add(out, op.as<ir::CopyAttributes>().src, false, true), add(out, op.as<ir::CopyAttributes>().dst, true, true);
      return true;
    case OpKind::Fill: add(out, op.as<ir::FillAttributes>().dst, true, false); return true;
    case OpKind::Reduce: {
      const auto& a = op.as<ir::ReduceAttributes>();
      add(out, a.src, false, true), add(out, a.dst, true, false);
      return true;
    }
    case OpKind::Constant:
    case OpKind::IndexValue:
    case OpKind::Unary:
    case OpKind::Binary:
    case OpKind::Compare:
    case OpKind::Select:
    case OpKind::Cast: return true;
    default: return false;
  }
}

int arithmetic(const Op& op) {
  if (op.kind != OpKind::Parallel) return 1;
  int cost = 0;
  for_each_op(*op.regions[0], [&](Op& inner) {
    if (inner.kind == OpKind::Unary) {
      switch (inner.as<ir::UnaryAttributes>().op) {
        case ir::UnaryOp::Neg:
        case ir::UnaryOp::Abs:
        case ir::UnaryOp::Not: cost += 1; return;
        default: cost += 12; return;
      }
    }
    cost += (info(inner.kind).traits & ir::kPure) != 0;
  });
  return cost;
}

FusedGroup find_group(const ir::Region& region, size_t position) {
  constexpr size_t kMostMembers = 8;
  FusedGroup group;
  std::vector<Touch> touched;
  for (size_t i = position; i < region.ops.size() && group.members.size() < kMostMembers; ++i) {
    const Op& op = *region.ops[i];
    std::vector<Touch> touches;
    if (!touches_of(op, touches)) break;
    const auto extents = space_of(op);
    const bool fits = can_be_member(op, extents) && (group.members.empty() || extents == group.extents);
    if (fits && !conflicts(touched, touches, true)) {
      if (group.members.empty()) group.extents = extents;
      group.members.push_back(&op);
      group.consumed = i + 1 - position;
      touched.insert(touched.end(), touches.begin(), touches.end());
      continue;
    }
    if (group.members.empty() || conflicts(touched, touches, false)) break;
    group.before.push_back(&op);
  }
  // Operations after the last member stay where they are.
  const auto last = group.members.empty() ? region.ops.end() : std::ranges::find(region.ops, group.members.back());
  std::erase_if(group.before, [&](const Op* op) { return std::ranges::find(region.ops, op) > last; });
  if (group.members.size() < 2) group = {};
  return group;
}

}  // namespace tilewright::plan::cpu
