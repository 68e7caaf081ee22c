// One pass over rows for a group of operations (fused_group.h).
#include <fmt/format.h>

#include "plan/cpu/fused_group.h"
#include "plan/cpu/liveness.h"
#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::Op;
using ir::OpKind;
using ir::ReduceKind;
using ir::Type;
using ir::Value;

namespace {

bool takes_magnitude(ReduceKind kind) { return kind == ReduceKind::AbsSum || kind == ReduceKind::AbsMax; }

}  // namespace

/// Lanes all members can work in; 0 when one cannot be vectorised along the last dimension.
int Lowering::group_lanes(const FusedGroup& group) {
  const int last = static_cast<int>(group.extents.size()) - 1;
  int lanes = 64;
  const auto narrow = [&](DType dtype) {
    lanes = std::min(lanes, lanes_for(map(group.extents.back()), compute_type(dtype)));
  };
  for (const Op* op : group.members) {
    if (op->kind == OpKind::Parallel) {
      const LaneChoice choice = choose_lanes(*op);
      if (choice.dimension != last || choice.lanes == 1) return 0;
      lanes = std::min(lanes, choice.lanes);
    } else if (op->kind == OpKind::Copy) {
      narrow(op->as<ir::CopyAttributes>().src.buffer->type.dtype),
          narrow(op->as<ir::CopyAttributes>().dst.buffer->type.dtype);
    } else {
      narrow(op->as<ir::ReduceAttributes>().src.buffer->type.dtype),
          narrow(op->as<ir::ReduceAttributes>().dst.buffer->type.dtype);
    }
  }
  return lanes;
}

/// Emits one member for the lanes at `at`; a reduction returns its joined partial result.
Value* Lowering::lower_member(const Op& op, const std::vector<Index>& at, Value* partial, bool masked) {
  b_.set_location(op.location);
  if (op.kind == OpKind::Parallel) {
    const ir::Region& body = *op.regions[0];
    for (size_t d = 0; d < at.size(); ++d) index_of_[body.arguments[d]] = at[d];
    for (const Op* inner : body.ops) {
      if (inner->kind == OpKind::Yield || (inner->result() && hoisted_.contains(inner->result()))) continue;
      lower_element(*inner);
    }
    return nullptr;
  }
  if (op.kind == OpKind::Copy) {
    const auto& a = op.as<ir::CopyAttributes>();
    Value* x = load(source_of(a.src.buffer), view_at(a.src, at), op.operands.empty() ? nullptr : value(op.operands[0]));
    prefetch_next_block(a.src, at);
    store(placement(a.dst.buffer), view_at(a.dst, at), b_.cast(x, compute_type(a.dst.buffer->type.dtype)));
    return nullptr;
  }
  const auto& a = op.as<ir::ReduceAttributes>();
  const DType compute = compute_type(a.dst.buffer->type.dtype);
  Value* x = load(source_of(a.src.buffer), view_at(a.src, at));
  if (takes_magnitude(a.kind)) x = b_.unary(ir::UnaryOp::Abs, x);
  x = widen(b_.cast(x, compute));
  if (masked) x = select(lane_mask(lanes_.remaining), x, identity(a.kind, compute, lanes_.count));
  return join(a.kind, partial, x);
}

void Lowering::finish_reduction(const ir::ReduceAttributes& a, Value* total, std::vector<Index> row) {
  const DType compute = compute_type(a.dst.buffer->type.dtype);
  if (total->type.lanes > 1) {
    const ReduceKind kind = a.kind == ReduceKind::AbsSum   ? ReduceKind::Sum
                            : a.kind == ReduceKind::AbsMax ? ReduceKind::Max
                                                           : a.kind;
    total = b_.op(OpKind::VectorReduce, {total}, ir::ReduceLanesAttributes{kind}, {Type::scalar(compute)})->result();
  }
  const Placement& dst = placement(a.dst.buffer);
  if (a.accumulate) total = join(a.kind, load(dst, view_at(a.dst, row)), total);
  store(dst, view_at(a.dst, row), total);
}

/// The block after this one reads the same view one step further along the first grid axis: start fetching it.
void Lowering::prefetch_next_block(const ir::View& view, const std::vector<Index>& at) {
  if (view.buffer->type.space != ir::MemorySpace::Global || loop_depth_ > 0) return;
  const Value* axis = grid_->regions[0]->arguments[0];
  const Placement& place = placement(view.buffer);
  Index distance = number(0);
  for (size_t d = 0; d < view.slices.size(); ++d) {
    const Index start = view.slices[d].start;
    if (!uses_symbol(start, axis)) continue;
    const Index step =
        substitute(
            start, [&](const Value* v) { return v == axis ? start.node()->context->symbol(v) + 1 : Index(); },
            *start.node()->context) -
        start;
    if (!step.constant()) return;
    distance = distance + place.strides[d] * *step.constant();
  }
  if (distance.is_constant(0)) return;
  Index bytes = distance;
  const auto element = view_at(view, at);
  for (size_t d = 0; d < element.size(); ++d) bytes = bytes + element[d] * place.strides[d];
  b_.op(OpKind::Prefetch, {place.pointer}, ir::MemoryAttributes{.bytes = bytes, .streaming = true});
}

/// Extents of the pass: a last copy to global memory limits it when nothing later reads what it skips.
std::vector<Index> Lowering::group_extents(const FusedGroup& group) const {
  auto extents = map(group.extents);
  const Op& last = *group.members.back();
  if (last.kind != OpKind::Copy || last.as<ir::CopyAttributes>().dst.buffer->type.space != ir::MemorySpace::Global)
    return extents;
  for (const Op* op : group.members) {
    std::vector<Touch> touches;
    touches_of(*op, touches);
    for (const Touch& t : touches) {
      if (t.is_write && op != &last && (!t.is_own_element || is_live_after(*grid_, last, t.buffer))) return extents;
    }
  }
  return inside_extents(last.as<ir::CopyAttributes>().dst, extents);
}

/// Tiles whose elements only travel from one member to the next need no store.
void Lowering::find_unread_stores(const FusedGroup& group) {
  unread_.clear();
  for (const Op* op : group.members) {
    std::vector<Touch> touches;
    touches_of(*op, touches);
    for (const Touch& t : touches) {
      const DType dtype = t.buffer->type.dtype;
      if (!t.is_write || !t.is_own_element || dtype != compute_type(dtype)) continue;
      const bool is_read =
          is_live_after(*grid_, *group.members.back(), t.buffer) && !options_.plant.is("lower_fused", 2);
      if (!is_read) unread_.insert(placement(t.buffer).pointer);  // planted: tiles that are read later are not stored
    }
  }
}

Status Lowering::lower_group(const FusedGroup& group, int lanes) {
  for (const Op* op : group.before) {
    if (Status done = lower_op(*op); !done) return done;
    end_sources(*op);
  }
  std::string names;
  for (const Op* op : group.members) names += (names.empty() ? "" : ", ") + std::string(info(op->kind).mnemonic);
  fact("one pass", fmt::format("{} over one iteration space, {} lanes", names, lanes), group.members.front()->location);
  find_unread_stores(group);
  for (const Op* op : group.members) begin_streams(*op);
  lower_group_loops(group, group_extents(group), lanes);
  end_streams();
  unread_.clear();
  for (const Op* op : group.members) end_sources(*op);
  return {};
}

void Lowering::lower_group_loops(const FusedGroup& group, const std::vector<Index>& extents, int lanes) {
  std::vector<Index> outer(extents.begin(), extents.end() - 1);
  lower_guarded(find_guard(group.members), [&] {
    nest(outer, {}, [&](const std::vector<Index>& row) { lower_group_row(group, row, extents.back(), lanes); });
  });
}

/// What every element of a row shares is computed before its loop.
void Lowering::hoist_members(const FusedGroup& group, const std::vector<Index>& row) {
  hoisted_.clear();
  for (const Op* op : group.members) {
    if (op->kind != OpKind::Parallel) continue;
    const ir::Region& body = *op->regions[0];
    for (size_t d = 0; d < row.size(); ++d) index_of_[body.arguments[d]] = row[d];
    hoist_uniform(body, body.arguments.back());
  }
}

/// All members for the lanes at `at`; the reductions' joined partial results.
std::vector<Value*> Lowering::lower_group_lanes(const FusedGroup& group, const std::vector<Index>& at,
                                                const std::vector<Value*>& partial, bool masked) {
  forwards_ = true;
  std::vector<Value*> next;
  for (const Op* op : group.members) {
    Value* joined = lower_member(*op, at, op->kind == OpKind::Reduce ? partial[next.size()] : nullptr, masked);
    if (joined) next.push_back(joined);
    if (const auto ends = source_ends_.find(op); ends != source_ends_.end())
      replaced_.insert(ends->second.begin(), ends->second.end());
  }
  if (const auto view = prefetched_at_.find(group.members.front()); view != prefetched_at_.end() && !masked)
    prefetch_next_block(*view->second, at);
  forwards_ = false, forwarded_.clear(), replaced_.clear();
  return next;
}

namespace {

/// Vectors in flight along a row, so that a light pass is not bound by the latency of its reductions.
int vectors_in_flight(const FusedGroup& group, Index length, int lanes) {
  int cost = 0;
  bool reduces = false;
  for (const Op* op : group.members) cost += arithmetic(*op), reduces |= op->kind == OpKind::Reduce;
  if (!reduces || !length.constant()) return 1;
  const int wanted = cost <= 3 ? 4 : 2;
  constexpr int64_t kWorthwhile = 512;  // elements; independent short rows overlap by themselves
  return *length.constant() % (int64_t{wanted} * lanes) == 0 && *length.constant() >= kWorthwhile ? wanted : 1;
}

}  // namespace

void Lowering::lower_group_row(const FusedGroup& group, const std::vector<Index>& row, Index length, int lanes) {
  hoist_members(group, row);
  std::vector<const ir::ReduceAttributes*> reductions;
  for (const Op* op : group.members) {
    if (op->kind == OpKind::Reduce) reductions.push_back(&op->as<ir::ReduceAttributes>());
  }
  const size_t count = reductions.size();
  const int in_flight = vectors_in_flight(group, length, lanes);
  std::vector<Value*> partial;
  for (int u = 0; u < in_flight; ++u) {
    for (const auto* a : reductions)
      partial.push_back(identity(a->kind, compute_type(a->dst.buffer->type.dtype), lanes));
  }
  const auto loop = [&](Index lo, Index hi, bool masked) {
    if ((hi - lo).is_constant(0)) return;
    const Lanes outside = lanes_;
    const int64_t step = int64_t{in_flight} * lanes;
    const Op* made = b_.for_loop(lo, hi, number(step), partial, [&](const std::vector<Value*>& v) {
      std::vector<Value*> next;
      for (int u = 0; u < in_flight; ++u) {
        lanes_ = {.count = lanes, .variable = v[0]};
        bounds_.declare(v[0], number(0), length - 1 - int64_t{u} * lanes);  // what its last lane adds included
        auto at = row;
        at.push_back(vector_.indices().symbol(v[0]) + int64_t{u} * lanes);
        if (masked) lanes_.remaining = length - at.back();
        const auto from = v.begin() + 1 + static_cast<int64_t>(u * count);
        const auto joined = lower_group_lanes(group, at, {from, from + static_cast<int64_t>(count)}, masked);
        next.insert(next.end(), joined.begin(), joined.end());
        lanes_ = outside;
      }
      b_.yield(std::move(next));
    });
    partial = made->results;
  };
  const Index whole = floordiv(length, lanes) * lanes;
  loop(number(0), whole, false);
  if (!options_.plant.is("lower_fused", 1)) loop(whole, length, true);  // planted: the ragged end of a row is skipped
  for (size_t n = 0; n < count; ++n) {
    for (size_t u = 1; u < static_cast<size_t>(in_flight); ++u)
      partial[n] = join(reductions[n]->kind, partial[n], partial[u * count + n]);
    finish_reduction(*reductions[n], partial[n], row);
  }
  hoisted_.clear();
}

}  // namespace tilewright::plan::cpu
