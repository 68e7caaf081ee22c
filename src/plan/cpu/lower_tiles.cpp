// Whole-tile operations as loops over lanes: fill, copy, reduce, scan, arg reductions, atomic tiles, plain gemm.
#include <algorithm>

#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::Op;
using ir::OpKind;
using ir::ReduceKind;
using ir::Type;
using ir::Value;

/// Element of a view: `at` counts kept dimensions; what it leaves out (the one element that a tile of one dimension
/// reduces into) is at 0.
std::vector<Index> Lowering::view_at(const ir::View& view, const std::vector<Index>& at) const {
  std::vector<Index> out;
  size_t next = 0;
  for (const ir::Slice& s : view.slices) {
    const bool is_given = s.keep && next < at.size();
    out.push_back(is_given ? map(s.start) + at[next++] : map(s.start));
  }
  return out;
}

std::vector<Index> Lowering::view_extents(const ir::View& view) const { return map(view.extents()); }

/// The kept dimension that most of the views' last dimensions are; -1 when there is none.
int Lowering::lane_dimension(const std::vector<const ir::View*>& views, int excluded) const {
  int best = -1;
  for (const ir::View* view : views) {
    const int kept =
        static_cast<int>(std::count_if(view->slices.begin(), view->slices.end(), [](const auto& s) { return s.keep; }));
    if (kept == 0) continue;
    const int last = view->slices.back().keep ? kept - 1 : -1;
    if (last >= 0 && last != excluded) return last;
    if (best < 0) best = kept - 1 == excluded ? kept - 2 : kept - 1;
  }
  return best;
}

void Lowering::lower_fill(const Op& op) {
  const ir::View& dst = op.as<ir::FillAttributes>().dst;
  const auto extents = view_extents(dst);
  const int d = lane_dimension({&dst});
  Value* v = value(op.operands[0]);
  const int lanes = d < 0 ? 1 : lanes_for(extents[static_cast<size_t>(d)], compute_type(dst.buffer->type.dtype));
  if (lanes > 1) v = widen(v, lanes);
  nest(extents, {d, lanes}, [&](const std::vector<Index>& at) { store(placement(dst.buffer), view_at(dst, at), v); });
}

/// How far along each kept dimension the view lies inside its buffer; what cannot be said is left to masks.
std::vector<Index> Lowering::inside_extents(const ir::View& view, std::vector<Index> extents) const {
  const Placement& place = placement(view.buffer);
  size_t kept = 0;
  for (size_t d = 0; d < view.slices.size(); ++d) {
    if (!view.slices[d].keep) continue;
    Index& extent = extents[kept++];
    const Index start = map(view.slices[d].start), size = place.extents[d];
    if (bounds_.is_never_less(size, start + extent) || !bounds_.is_never_less(size, start)) continue;
    extent = bounds_.is_never_less(start + extent, size) ? size - start : min(extent, size - start);
  }
  return extents;
}

/// Loops only over what lies inside both buffers, then fills the rest with the out-of-bounds value.
void Lowering::lower_copy(const Op& op) {
  const auto& a = op.as<ir::CopyAttributes>();
  const DType from = source_of(a.src.buffer).storage, to = a.dst.buffer->type.dtype;
  Value* oob = op.operands.empty() ? nullptr : value(op.operands[0]);
  const bool raw = from == to && !oob;
  const DType widest = bits(compute_type(from)) > bits(compute_type(to)) ? compute_type(from) : compute_type(to);
  const auto written = inside_extents(a.dst, view_extents(a.dst));
  const auto read = inside_extents(a.src, written);
  const int d = lane_dimension({&a.dst, &a.src});
  begin_streams(op);
  const LaneChoice choice{d, d < 0 ? 1 : lanes_for(written[static_cast<size_t>(d)], raw ? from : widest)};
  nest(read, choice, [&](const std::vector<Index>& at) {
    Value* v = load(source_of(a.src.buffer), view_at(a.src, at), oob, raw);
    if (!raw) v = b_.cast(v, compute_type(to));
    store(placement(a.dst.buffer), view_at(a.dst, at), v, raw);
  });
  end_streams();
  if (read == written) return;
  const DType compute = compute_type(to);
  Value* rest = oob ? b_.cast(oob, compute) : is_float(compute) ? b_.real(compute, 0) : b_.integer(compute, 0);
  for (size_t axis = 0; axis < read.size(); ++axis) {
    if (read[axis] == written[axis]) continue;
    std::vector<Index> extents = written;
    for (size_t before = 0; before < axis; ++before) extents[before] = read[before];
    extents[axis] = written[axis] - read[axis];
    nest(extents, choice, [&](std::vector<Index> at) {
      at[axis] = at[axis] + read[axis];
      store(placement(a.dst.buffer), view_at(a.dst, at), choice.lanes > 1 ? widen(rest) : rest);
    });
  }
}

namespace {

std::vector<Index> without(std::vector<Index> x, int d) {
  x.erase(x.begin() + d);
  return x;
}
std::vector<Index> with(std::vector<Index> x, int d, Index i) {
  x.insert(x.begin() + d, i);
  return x;
}
bool takes_magnitude(ReduceKind kind) { return kind == ReduceKind::AbsSum || kind == ReduceKind::AbsMax; }

}  // namespace

void Lowering::lower_reduce(const Op& op) {
  const auto& a = op.as<ir::ReduceAttributes>();
  const auto extents = view_extents(a.src);
  const bool along_rows = a.src.slices.back().keep && a.dim + 1 == static_cast<int>(extents.size());
  if (along_rows) return lower_row_reduce(a, extents);
  const auto outer = without(extents, a.dim);
  const int d = lane_dimension({&a.src}, a.dim);
  const DType compute = compute_type(a.dst.buffer->type.dtype);
  const DType source = compute_type(a.src.buffer->type.dtype);
  const int lane = d < 0 ? -1 : d > a.dim ? d - 1 : d;
  const int lanes =
      lane < 0 ? 1 : lanes_for(outer[static_cast<size_t>(lane)], bits(source) > bits(compute) ? source : compute);
  nest(outer, {lane, lanes}, [&](const std::vector<Index>& at) {
    const Placement& dst = placement(a.dst.buffer);
    Value* start = a.accumulate ? widen(load(dst, view_at(a.dst, at))) : identity(a.kind, compute, lanes_.count);
    const Op* loop = b_.for_loop(
        number(0), extents[static_cast<size_t>(a.dim)], number(1), {start}, [&](const std::vector<Value*>& v) {
          bounds_.declare(v[0], number(0), extents[static_cast<size_t>(a.dim)] - 1);
          Value* x = load(source_of(a.src.buffer), view_at(a.src, with(at, a.dim, vector_.indices().symbol(v[0]))));
          if (takes_magnitude(a.kind)) x = b_.unary(ir::UnaryOp::Abs, x);
          x = b_.cast(x, compute);
          b_.yield({widen(join(a.kind, v[1], x))});
        });
    store(dst, view_at(a.dst, at), loop->results[0]);
  });
}

/// Several vectors in flight along the row, one reduction across lanes at its end.
void Lowering::lower_row_reduce(const ir::ReduceAttributes& a, const std::vector<Index>& extents) {
  constexpr int kInFlight = 4;
  const auto outer = without(extents, a.dim);
  const Index length = extents[static_cast<size_t>(a.dim)];
  const DType compute = compute_type(a.dst.buffer->type.dtype);
  const DType source = compute_type(a.src.buffer->type.dtype);
  const int lanes = lanes_for(length, bits(source) > bits(compute) ? source : compute);
  nest(outer, {}, [&](const std::vector<Index>& at) {
    const Lanes outside = lanes_;
    const auto step = [&](Value* variable, int64_t ahead, Value* old, bool masked) {
      lanes_ = {.count = lanes, .variable = variable};
      bounds_.declare(variable, number(0), length - 1 - (masked ? 0 : ahead));
      const Index i = vector_.indices().symbol(variable) + ahead;
      if (masked) lanes_.remaining = length - i;
      Value* x = load(source_of(a.src.buffer), view_at(a.src, with(at, a.dim, i)));
      if (takes_magnitude(a.kind)) x = b_.unary(ir::UnaryOp::Abs, x);
      x = widen(b_.cast(x, compute));
      if (masked && !options_.plant.is("lower_tiles", 1))
        x = select(lane_mask(lanes_.remaining), x, identity(a.kind, compute, lanes));
      Value* joined = join(a.kind, old, x);
      lanes_ = outside;
      return joined;
    };
    std::vector<Value*> partial(kInFlight);
    for (Value*& p : partial) p = identity(a.kind, compute, lanes);
    const int64_t stride = int64_t{kInFlight} * lanes;
    const Index wide = floordiv(length, stride) * stride, whole = floordiv(length, lanes) * lanes;
    const auto loop = [&](Index lo, Index hi, int64_t by, int count, bool masked) {
      if ((hi - lo).is_constant(0)) return;
      std::vector<Value*> initial(partial.begin(), partial.begin() + count);
      const Op* made = b_.for_loop(lo, hi, number(by), initial, [&](const std::vector<Value*>& v) {
        std::vector<Value*> next;
        for (int i = 0; i < count; ++i)
          next.push_back(step(v[0], int64_t{i} * lanes, v[static_cast<size_t>(i) + 1], masked));
        b_.yield(std::move(next));
      });
      for (int i = 0; i < count; ++i) partial[static_cast<size_t>(i)] = made->results[static_cast<size_t>(i)];
    };
    loop(number(0), wide, stride, kInFlight, false);
    loop(wide, whole, lanes, 1, false);
    loop(whole, length, lanes, 1, true);
    Value* total = join(a.kind, join(a.kind, partial[0], partial[1]), join(a.kind, partial[2], partial[3]));
    if (lanes > 1) {
      const ReduceKind kind = a.kind == ReduceKind::AbsSum   ? ReduceKind::Sum
                              : a.kind == ReduceKind::AbsMax ? ReduceKind::Max
                                                             : a.kind;
      total = b_.op(OpKind::VectorReduce, {total}, ir::ReduceLanesAttributes{kind}, {Type::scalar(compute)})->result();
    }
    const Placement& dst = placement(a.dst.buffer);
    if (a.accumulate) total = join(a.kind, load(dst, view_at(a.dst, at)), total);
    store(dst, view_at(a.dst, at), total);
  });
}

void Lowering::lower_scan(const Op& op) {
  const auto& a = op.as<ir::ScanAttributes>();
  const auto extents = view_extents(a.src);
  const auto outer = without(extents, a.dim);
  const bool along_rows = a.dim + 1 == static_cast<int>(extents.size());
  const int d = along_rows ? -1 : lane_dimension({&a.src}, a.dim);
  const int lane = d < 0 ? -1 : d > a.dim ? d - 1 : d;
  const DType compute = compute_type(a.dst.buffer->type.dtype);
  const int lanes = lane < 0 ? 1 : lanes_for(outer[static_cast<size_t>(lane)], compute);
  const ReduceKind kind = a.kind == ir::ScanKind::Sum    ? ReduceKind::Sum
                          : a.kind == ir::ScanKind::Prod ? ReduceKind::Prod
                                                         : ReduceKind::Max;
  const Index length = extents[static_cast<size_t>(a.dim)];
  nest(outer, {lane, lanes}, [&](const std::vector<Index>& at) {
    b_.for_loop(number(0), length, number(1), {identity(kind, compute, lanes_.count)},
                [&](const std::vector<Value*>& v) {
                  bounds_.declare(v[0], number(0), length - 1);
                  const auto element = with(at, a.dim, vector_.indices().symbol(v[0]));
                  Value* x = b_.cast(load(source_of(a.src.buffer), view_at(a.src, element)), compute);
                  Value* running = widen(join(kind, v[1], x));
                  store(placement(a.dst.buffer), view_at(a.dst, element), running);
                  b_.yield({running});
                });
  });
}

/// The first extreme element; a NaN is more extreme than any number.
void Lowering::lower_reduce_arg(const Op& op) {
  const auto& a = op.as<ir::ReduceArgAttributes>();
  const auto extents = view_extents(a.src);
  const auto outer = without(extents, a.dim);
  const bool along_rows = a.dim + 1 == static_cast<int>(extents.size());
  const int d = along_rows ? -1 : lane_dimension({&a.src}, a.dim);
  const int lane = d < 0 ? -1 : d > a.dim ? d - 1 : d;
  const DType source = compute_type(a.src.buffer->type.dtype), index = a.index.buffer->type.dtype;
  const int lanes =
      lane < 0 ? 1 : lanes_for(outer[static_cast<size_t>(lane)], bits(source) > bits(index) ? source : index);
  const Index length = extents[static_cast<size_t>(a.dim)];
  nest(outer, {lane, lanes}, [&](const std::vector<Index>& at) {
    const auto element = [&](Index k) {
      return widen(load(source_of(a.src.buffer), view_at(a.src, with(at, a.dim, k))));
    };
    std::vector<Value*> start{element(number(0)), b_.integer(index, 0, lanes_.count)};
    const Op* loop = b_.for_loop(number(1), length, number(1), start, [&](const std::vector<Value*>& v) {
      bounds_.declare(v[0], number(0), length - 1);
      const Index k = vector_.indices().symbol(v[0]);
      Value* x = element(k);
      Value* better = b_.compare(a.is_max ? ir::CompareOp::Gt : ir::CompareOp::Lt, x, v[1]);
      if (is_float(source)) {
        Value* fresh_nan = b_.binary(ir::BinaryOp::And, b_.unary(ir::UnaryOp::IsNan, x),
                                     b_.unary(ir::UnaryOp::Not, b_.unary(ir::UnaryOp::IsNan, v[1])));
        better = b_.binary(ir::BinaryOp::Or, better, fresh_nan);
      }
      Value* here = widen(b_.cast(b_.index_value(k), index));
      b_.yield({b_.select(better, x, v[1]), b_.select(better, here, v[2])});
    });
    store(placement(a.value.buffer), view_at(a.value, at),
          b_.cast(loop->results[0], compute_type(a.value.buffer->type.dtype)));
    store(placement(a.index.buffer), view_at(a.index, at), loop->results[1]);
  });
}

void Lowering::lower_atomic_tile(const Op& op) {
  const auto& a = op.as<ir::AtomicTileAttributes>();
  const auto extents = view_extents(a.dst);
  nest(extents, {}, [&](const std::vector<Index>& at) {
    const Placement& dst = placement(a.dst.buffer);
    Value* x = b_.cast(load(source_of(a.src.buffer), view_at(a.src, at)), compute_type(dst.storage));
    const Address where = address(dst, view_at(a.dst, at));
    const auto perform = [&](const std::vector<Value*>&) {
      b_.op(OpKind::AtomicMemory, {b_.offset(where.pointer, where.bytes), x},
            ir::AtomicMemoryAttributes{a.kind, dst.storage}, {x->type});
      b_.yield({});
    };
    if (where.mask)
      b_.if_else(where.mask, perform, [&](const std::vector<Value*>&) { b_.yield({}); });
    else
      perform({});
  });
}

}  // namespace tilewright::plan::cpu
