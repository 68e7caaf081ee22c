#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "interp/bounded.h"
#include "interp/lane_ops.h"
#include "interp/reductions.h"
#include "interp/tile_machine.h"

namespace tilewright::interp {
namespace {

Axis axis_of(const std::vector<int64_t>& extents, int dim) {
  Axis axis;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (static_cast<int>(d) < dim) axis.outer *= extents[d];
    if (static_cast<int>(d) == dim) axis.extent = extents[d];
    if (static_cast<int>(d) > dim) axis.inner *= extents[d];
  }
  return axis;
}

/// Calls f(first lane, first element, inside count, row length) per innermost row: lanes [0, skip) and those after
/// skip + inside are out of bounds.
struct Row {
  int64_t lane = 0;     ///< of the row's first element
  int64_t element = 0;  ///< of the first element inside
  int64_t skip = 0;     ///< lanes before the first one inside
  int64_t inside = 0;   ///< lanes inside, 0 when the whole row is out of bounds
  int64_t length = 0;
};

template <typename F>
void for_rows(const Storage& s, const std::vector<int64_t>& starts, const std::vector<int64_t>& extents, F f) {
  const size_t rank = extents.size();
  const int64_t length = rank ? extents[rank - 1] : 1;
  const int64_t total = std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  if (total <= 0) return;
  std::vector<int64_t> at(rank, 0);
  for (int64_t lane = 0; lane < total; lane += length) {
    Row row = {.lane = lane, .inside = length, .length = length};
    for (size_t d = 0; d + 1 < rank; ++d) {
      const int64_t v = starts[d] + at[d];
      if (v < 0 || v >= s.shape[d]) row.inside = 0;
      row.element += v * s.strides[d];
    }
    if (rank) {
      row.skip = std::clamp<int64_t>(-starts[rank - 1], 0, length);
      const int64_t end = std::clamp<int64_t>(s.shape[rank - 1] - starts[rank - 1], 0, length);
      row.inside = row.inside ? std::max<int64_t>(end - row.skip, 0) : 0;
      row.element += starts[rank - 1] + row.skip;
    }
    f(row);
    for (size_t d = rank - 1; rank > 1 && d-- > 0;) {
      if (++at[d] < extents[d]) break;
      at[d] = 0;
    }
  }
}

template <typename T>
void copy_row(const std::vector<T>& from, std::vector<T>& to, int64_t source, int64_t target, int64_t count) {
  std::copy_n(from.begin() + source, count, to.begin() + target);
}

}  // namespace

std::expected<TileMachine::Window, Diagnostic> TileMachine::window(const ir::Op& op, const ir::View& view) {
  Window w;
  w.storage = storages_[view.buffer->id].get();
  bool inside = true;
  for (size_t d = 0; d < view.slices.size(); ++d) {
    const ir::Slice& slice = view.slices[d];
    w.starts.push_back(values_.uniform(slice.start));
    w.extents.push_back(values_.uniform(slice.extent));
    if (slice.keep) w.kept.push_back(w.extents.back());
    w.lanes *= std::max<int64_t>(w.extents.back(), 0);
    inside &= w.starts[d] >= 0 && w.starts[d] + w.extents[d] <= w.storage->shape[d];
    if (values_.mode() == Mode::Bounded) inconclusive |= values_.is_tainted(slice.start, 0);
  }
  if (!inside && w.storage->space != ir::MemorySpace::Global && w.lanes > 0) {
    return fail_at(
        DiagnosticCode::E1203, op.location,
        fmt::format("region starting at [{}] of extents [{}] leaves {}[{}], in {}", fmt::join(w.starts, ", "),
                    fmt::join(w.extents, ", "), view.buffer->name, fmt::join(w.storage->shape, ", "), place_text(0)),
        "only global memory has an outside: make the tile larger or the region smaller");
  }
  return w;
}

void TileMachine::read(const ir::Op& op, const Window& w, const Column* outside, Column& out) {
  Storage& s = *w.storage;
  out.reset(s.dtype, w.lanes);
  const Column zero = is_float(s.dtype) ? Column::of_real(s.dtype, 0) : Column::of_integer(s.dtype, 0);
  Column converted;
  if (outside) cast(*outside, compute_type(s.dtype), values_.mode(), converted);  // not rounded to storage
  const Column& fill = outside ? converted : zero;
  const bool real = out.is_real();
  if (real) {
    std::fill(out.real.begin(), out.real.end(), fill.real[0]);
    if (!s.elements.bound.empty()) out.bound.assign(static_cast<size_t>(w.lanes), fill.bound_at(0));
  } else {
    std::fill(out.integer.begin(), out.integer.end(), fill.integer[0]);
    if (!s.elements.taint.empty()) out.taint.assign(static_cast<size_t>(w.lanes), fill.taint_at(0));
  }
  element_operations += w.lanes;
  for_rows(s, w.starts, w.extents, [&](const Row& row) {
    const int64_t to = row.lane + row.skip;
    if (real) {
      copy_row(s.elements.real, out.real, row.element, to, row.inside);
      if (!out.bound.empty()) copy_row(s.elements.bound, out.bound, row.element, to, row.inside);
    } else {
      copy_row(s.elements.integer, out.integer, row.element, to, row.inside);
      if (!out.taint.empty()) copy_row(s.elements.taint, out.taint, row.element, to, row.inside);
    }
    if (!options_.check) return;
    for (int64_t i = 0; i < row.inside; ++i) note_read(op, s, row.element + i, 0);
  });
}

void TileMachine::write(const ir::Op& op, const Window& w, const Column& value) {
  Storage& s = *w.storage;
  for_rows(s, w.starts, w.extents, [&](const Row& row) {
    const int64_t from = row.lane + row.skip;
    if (options_.check) {
      for (int64_t i = 0; i < row.inside; ++i) note_write(op, s, row.element + i, 0);
    }
    if (lanes_.doubtful || value.is_uniform() || (value.is_real() && value.bound.empty() != s.elements.bound.empty()) ||
        (!value.is_real() && value.taint.empty() != s.elements.taint.empty())) {
      for (int64_t i = 0; i < row.inside; ++i) put(s, row.element + i, value, from + i);
      return;
    }
    std::fill_n(s.written.begin() + row.element, row.inside, uint8_t{1});
    if (value.is_real()) {
      copy_row(value.real, s.elements.real, from, row.element, row.inside);
      if (!value.bound.empty()) copy_row(value.bound, s.elements.bound, from, row.element, row.inside);
    } else {
      copy_row(value.integer, s.elements.integer, from, row.element, row.inside);
      if (!value.taint.empty()) copy_row(value.taint, s.elements.taint, from, row.element, row.inside);
    }
  });
}

bool TileMachine::overlap(const Window& x, const Window& y) const {
  if (x.storage != y.storage || x.lanes == 0 || y.lanes == 0) return false;
  for (size_t d = 0; d < x.starts.size(); ++d) {
    if (x.starts[d] + x.extents[d] <= y.starts[d] || y.starts[d] + y.extents[d] <= x.starts[d]) return false;
  }
  return true;
}

TileMachine::Step TileMachine::run_fill(const ir::Op& op) {
  const auto dst = window(op, op.as<ir::FillAttributes>().dst);
  if (!dst) return std::unexpected(dst.error());
  Column value;
  cast(values_[op.operands[0]], dst->storage->dtype, values_.mode(), value);
  element_operations += dst->lanes;
  write(op, *dst, value);
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_copy(const ir::Op& op) {
  const auto& a = op.as<ir::CopyAttributes>();
  const auto src = window(op, a.src);
  if (!src) return std::unexpected(src.error());
  const auto dst = window(op, a.dst);
  if (!dst) return std::unexpected(dst.error());
  if (src->kept != dst->kept) {
    return fail_at(DiagnosticCode::E1211, op.location,
                   fmt::format("copy of extents [{}] to [{}]", fmt::join(src->kept, ", "), fmt::join(dst->kept, ", ")));
  }
  if (options_.check && overlap(*src, *dst)) {
    findings.add(DiagnosticCode::E1206, op, a.src.buffer, [&]() -> Findings::Text {
      return {fmt::format("source and destination of the copy overlap in {}, in {}", a.src.buffer->name, place_text(0)),
              "copy through a second tile"};
    });
  }
  Column source, value;
  read(op, *src, op.operands.empty() ? nullptr : &values_[op.operands[0]], source);
  cast(source, dst->storage->dtype, values_.mode(), value);
  write(op, *dst, value);
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_gemm(const ir::Op& op) {
  const auto& g = op.as<ir::GemmAttributes>();
  const auto a = window(op, g.a), b = window(op, g.b), c = window(op, g.c);
  for (const auto* w : {&a, &b, &c}) {
    if (!*w) return std::unexpected(w->error());
    if ((*w)->kept.size() != 2) return fail_at(DiagnosticCode::E1211, op.location, "gemm operands have two dimensions");
  }
  const GemmShape shape = {.m = c->kept[0],
                           .n = c->kept[1],
                           .k = a->kept[g.transpose_a ? 0 : 1],
                           .transpose_a = g.transpose_a,
                           .transpose_b = g.transpose_b};
  if (a->kept[g.transpose_a ? 1 : 0] != shape.m || b->kept[g.transpose_b ? 1 : 0] != shape.k ||
      b->kept[g.transpose_b ? 0 : 1] != shape.n) {
    return fail_at(DiagnosticCode::E1211, op.location,
                   fmt::format("gemm of [{}] and [{}] into [{}]", fmt::join(a->kept, ", "), fmt::join(b->kept, ", "),
                               fmt::join(c->kept, ", ")));
  }
  Column va, vb, vc, out;
  read(op, *a, nullptr, va);
  read(op, *b, nullptr, vb);
  if (g.accumulate) read(op, *c, nullptr, vc);
  gemm(va, vb, g.accumulate ? &vc : nullptr, shape, c->storage->dtype, values_.mode(), out);
  element_operations += shape.m * shape.n * shape.k;
  write(op, *c, out);
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_reduce(const ir::Op& op) {
  const auto& a = op.as<ir::ReduceAttributes>();
  const auto src = window(op, a.src), dst = window(op, a.dst);
  if (!src) return std::unexpected(src.error());
  if (!dst) return std::unexpected(dst.error());
  const Axis axis = axis_of(src->kept, a.dim);
  if (axis.outer * axis.inner != dst->lanes) {
    return fail_at(DiagnosticCode::E1211, op.location,
                   fmt::format("reduction of [{}] along {} into [{}]", fmt::join(src->kept, ", "), a.dim,
                               fmt::join(dst->kept, ", ")));
  }
  Column x, old, out;
  read(op, *src, nullptr, x);
  if (a.accumulate) read(op, *dst, nullptr, old);
  reduce(a.kind, x, axis, a.accumulate ? &old : nullptr, dst->storage->dtype, values_.mode(), out);
  write(op, *dst, out);
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_reduce_arg(const ir::Op& op) {
  const auto& a = op.as<ir::ReduceArgAttributes>();
  const auto src = window(op, a.src), value = window(op, a.value), index = window(op, a.index);
  for (const auto* w : {&src, &value, &index}) {
    if (!*w) return std::unexpected(w->error());
  }
  Column x, extreme, at, out;
  read(op, *src, nullptr, x);
  reduce_arg(a.is_max, x, axis_of(src->kept, a.dim), values_.mode(), extreme, at);
  cast(extreme, value->storage->dtype, values_.mode(), out);
  write(op, *value, out);
  cast(at, index->storage->dtype, values_.mode(), out);
  write(op, *index, out);
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_scan(const ir::Op& op) {
  const auto& a = op.as<ir::ScanAttributes>();
  const auto src = window(op, a.src), dst = window(op, a.dst);
  if (!src) return std::unexpected(src.error());
  if (!dst) return std::unexpected(dst.error());
  Column x, out;
  read(op, *src, nullptr, x);
  scan(a.kind, x, axis_of(src->kept, a.dim), dst->storage->dtype, values_.mode(), out);
  write(op, *dst, out);
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_atomic_tile(const ir::Op& op) {
  const auto& a = op.as<ir::AtomicTileAttributes>();
  const auto src = window(op, a.src), dst = window(op, a.dst);
  if (!src) return std::unexpected(src.error());
  if (!dst) return std::unexpected(dst.error());
  Column source, value;
  read(op, *src, nullptr, source);
  cast(source, compute_type(dst->storage->dtype), values_.mode(), value);
  Storage& s = *dst->storage;
  for_rows(s, dst->starts, dst->extents, [&](const Row& row) {
    for (int64_t i = 0; i < row.inside; ++i) {
      if (options_.check) note_write(op, s, row.element + i, 0, true);
      join_atomic(a.kind, s, row.element + i, value, row.lane + row.skip + i);
    }
  });
  return Flow::Continue;
}

TileMachine::Step TileMachine::run_arrive_last(const ir::Op& op) {
  const auto& a = op.as<ir::ArriveLastAttributes>();
  const auto counter = window(op, a.counter);
  if (!counter) return std::unexpected(counter.error());
  Storage& s = *counter->storage;
  bool last = false;
  for_rows(s, counter->starts, counter->extents, [&](const Row& row) {
    if (row.inside == 0) return;
    int64_t& count = s.elements.integer[static_cast<size_t>(row.element)];
    if (options_.check) note_write(op, s, row.element, 0, true);
    count += 1;
    s.written[static_cast<size_t>(row.element)] = 1;
    last = count == values_.uniform(a.n);
    std::vector<int32_t>& before = arrivals_[{&s, row.element}];
    if (last) {
      for (const int32_t block : before) {
        if (happened_before_.size() <= static_cast<size_t>(block))
          happened_before_.resize(static_cast<size_t>(block) + 1);
        happened_before_[static_cast<size_t>(block)] = 1;
      }
    }
    before.push_back(block_);
  });
  values_[op.result()] = Column::of_integer(DType::Bool, last);
  return Flow::Continue;
}

}  // namespace tilewright::interp
