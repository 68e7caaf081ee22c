// Panels of B: found in the tile, packed by the block that needs them, or packed once for all blocks.
#include <fmt/format.h>

#include "plan/cpu/gemm_lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::OpKind;
using ir::Type;
using ir::Value;

namespace {

constexpr int64_t kPanelsPerTask = 4;
constexpr int64_t kRowsPerTask = 512;
constexpr int64_t kRowsAtOnce = 64;  ///< rows whose pages stay in the first-level TLB

Index product(const std::vector<Index>& factors, Index one) {
  Index out = one;
  for (Index f : factors) out = out * f;
  return out;
}

}  // namespace

/// Rows [k0, k0 + depth) of NR columns from `column`, zeros outside the operand.
void Lowering::emit_panel(const Operand& o, const PanelShape& shape, Value* to, Index column, Index k0, Index depth) {
  if (shape.dot) return emit_dot_panel(o, shape, to, column, k0, depth);
  const RegisterTile& tile = shape.tile;
  const DType compute = shape.compute;
  const int64_t element = bytes(compute), row_bytes = shape.row_bytes();
  const DType storage = o.place->storage;
  const bool is_full = bounds_.is_never_less(o.width_valid, column + tile.columns());
  const bool contiguous = o.width_stride.is_constant(bytes(storage));
  Value* from = b_.offset(o.place->pointer, o.base + column * o.width_stride + k0 * o.depth_stride);
  std::vector<Value*> masks(static_cast<size_t>(tile.vectors), nullptr);
  for (int v = 0; v < tile.vectors && !is_full; ++v) {
    const int64_t lost = options_.plant.is("pack_panels", 1) ? 1 : 0;  // planted: the last column of a ragged panel
    masks[static_cast<size_t>(v)] = b_.mask(o.width_valid - column - int64_t{v} * tile.lanes - lost, tile.lanes);
  }
  Value* offsets = nullptr;
  if (!contiguous) {
    Value* ramp = b_.op(OpKind::Iota, {}, {}, {Type::scalar(DType::I64, tile.lanes)})->result();
    offsets = b_.binary(ir::BinaryOp::Mul, ramp, widen(b_.index_value(o.width_stride), tile.lanes));
  }
  const Index inside =
      bounds_.is_never_less(o.depth_valid, k0 + depth) ? depth : max(min(depth, o.depth_valid - k0), number(0));
  b_.for_loop(number(0), inside, number(1), [&](const std::vector<Value*>& i) {
    const Index k = vector_.indices().symbol(i[0]);
    Value* row = b_.offset(from, k * o.depth_stride);
    for (int v = 0; v < tile.vectors; ++v) {
      Value* mask = masks[static_cast<size_t>(v)];
      const ir::MemoryAttributes memory{
          .storage = storage, .bytes = o.width_stride * (int64_t{v} * tile.lanes), .align = bytes(storage)};
      const Type type = Type::scalar(compute_type(storage), tile.lanes);
      std::vector<Value*> operands{row};
      if (offsets) operands.push_back(offsets);
      if (mask) operands.push_back(mask);
      Value* x = b_.op(offsets ? OpKind::Gather : OpKind::VectorLoad, std::move(operands), memory, {type})->result();
      b_.vstore(to,
                {.storage = compute,
                 .bytes = k * row_bytes + int64_t{v} * tile.lanes * element,
                 .align = static_cast<int>(element)},
                b_.cast(x, compute));
    }
    b_.yield({});
  });
  if ((depth - inside).is_constant(0)) return;
  Value* zero = is_float(compute) ? b_.real(compute, 0, tile.lanes) : b_.integer(compute, 0, tile.lanes);
  b_.for_loop(inside, depth, number(1), [&](const std::vector<Value*>& i) {
    for (int v = 0; v < tile.vectors; ++v) {
      const Index at = vector_.indices().symbol(i[0]) * row_bytes + int64_t{v} * tile.lanes * element;
      b_.vstore(to, {.storage = compute, .bytes = at, .align = static_cast<int>(element)}, zero);
    }
    b_.yield({});
  });
}

Panel GemmLowering::packed_panel(Index column, Index k0, Index depth) {
  Value* to = b_.scratch(l_.number(b_scratch_));
  l_.emit_panel(b_operand_, panel_shape(), to, column, k0, depth);
  return {to, l_.number(tile_.columns() * bytes(compute_))};
}

Panel GemmLowering::shared_panel(Index column, Index k0) {
  const auto& slices = b_operand_.view->slices;
  Index which = l_.number(0);
  for (size_t d = 0; d < slices.size(); ++d) {
    if (static_cast<int>(d) == b_operand_.width_dim || static_cast<int>(d) == b_operand_.depth_dim) continue;
    which = which * b_operand_.place->extents[d] + l_.map(slices[d].start);
  }
  const Index panels = shared_panels();
  const Index panel = which * panels + floordiv(b_operand_.width_start + column, tile_.columns());
  const int64_t row_bytes = tile_.columns() * bytes(compute_);
  const int terms = panel_shape().terms();
  const Index rows = ceildiv(panel_depth_, terms);
  const Index row = panel * rows + floordiv(b_operand_.depth_start + k0, terms);
  Value* here = b_.offset(b_.argument(workspace_), row * row_bytes);
  return {here, l_.number(row_bytes), b_.offset(here, rows * row_bytes)};
}

/// Panels per matrix: whole tiles of the view's width.
Index GemmLowering::shared_panels() const {
  const Index size = b_operand_.place->extents[static_cast<size_t>(b_operand_.width_dim)];
  return ceildiv(size, columns_) * (columns_ / tile_.columns());
}

Panel GemmLowering::find_panel(Index column, Index k0, Index depth) {
  const Index in_place_bytes = b_operand_.base + column * b_operand_.width_stride + k0 * b_operand_.depth_stride;
  if (reads_in_place_ && !b_operand_.is_global)
    return {b_.offset(b_operand_.place->pointer, in_place_bytes), b_operand_.depth_stride};
  if (!shares_ && !reads_in_place_) return packed_panel(column, k0, depth);
  // A product of few rows reads B as fast as memory gives it: there the processor's own prefetching is enough, and
  // asking as well takes a tenth longer.
  const auto in_place = [&]() -> Panel {
    return {
        b_.offset(b_operand_.place->pointer, in_place_bytes), b_operand_.depth_stride, nullptr, !has_few_rows(), {}};
  };
  std::vector<Value*> masks;
  if ((!shares_ || reads_alone_in_place_) &&
      !l_.bounds_.is_never_less(b_operand_.width_valid, column + tile_.columns())) {
    for (int v = 0; v < tile_.vectors; ++v)
      masks.push_back(b_.mask(b_operand_.width_valid - column - int64_t{v} * tile_.lanes, tile_.lanes));
  }
  Panel panel;
  if (!shares_) {
    panel = in_place();
  } else if (always_shares_) {
    return shared_panel(column, k0);
  } else {
    const auto give = [&](const Panel& p) {
      b_.yield({p.pointer, p.next ? p.next : p.pointer, b_.index_value(p.step)});
    };
    const Type pointer = Type::pointer(ir::MemorySpace::Global);
    const ir::Op* found = b_.if_else(
        b_.index_condition(is_shared_), [&](const std::vector<Value*>&) { give(shared_panel(column, k0)); },
        [&](const std::vector<Value*>&) { give(reads_alone_in_place_ ? in_place() : packed_panel(column, k0, depth)); },
        {pointer, pointer, Type::scalar(DType::I64)});
    panel = {found->results[0], l_.number(panel_shape().row_bytes()), found->results[1]};
    if (reads_alone_in_place_) panel.step = l_.vector_.indices().symbol(found->results[2]);
  }
  panel.masks = std::move(masks);
  return panel;
}

/// A global tensor no block writes, cut at whole panels, at places that only grid and loop variables decide.
bool GemmLowering::can_share() const {
  if (!l_.options_.share_panels || !b_operand_.is_global || columns_ % tile_.columns() != 0) return false;
  if (l_.is_written(b_operand_.view->buffer)) return false;
  if (!floormod(b_operand_.width_start, tile_.columns()).is_constant(0)) return false;
  if (!l_.map(b_operand_.view->slices[static_cast<size_t>(b_operand_.width_dim)].extent).is_constant(columns_))
    return false;
  if (!floormod(b_operand_.width_start, columns_).is_constant(0)) return false;
  for (const ir::Slice& s : b_operand_.view->slices) {
    bool regular = true;
    for_each_symbol(s.start, [&](const Value* v) { regular &= !v->def; });
    if (!regular) return false;
  }
  const Index extent = l_.map(b_operand_.view->slices[static_cast<size_t>(b_operand_.depth_dim)].extent);
  if (!floormod(b_operand_.depth_start, panel_shape().terms()).is_constant(0)) return false;
  const bool clipped = depth_ == b_operand_.depth_valid;
  return clipped || b_operand_.depth_start.is_constant(0) ||
         (extent.constant() && floormod(b_operand_.depth_start, extent).is_constant(0));
}

/// How many blocks read the same region: the extents of grid axes it does not depend on.
Index GemmLowering::sharing_blocks() const {
  Index blocks = l_.number(1);
  for (size_t d = 0; d < l_.grid_->regions[0]->arguments.size(); ++d) {
    const Value* variable = l_.grid_->regions[0]->arguments[d];
    bool used = false;
    for (const ir::Slice& s : b_operand_.view->slices) used |= uses_symbol(s.start, variable);
    if (!used) blocks = blocks * l_.arguments_.map(l_.grid_->as<ir::GridAttributes>().extents[d]);
  }
  return blocks;
}

void GemmLowering::request_packing() {
  const auto& place = *b_operand_.place;
  const Index size = place.extents[static_cast<size_t>(b_operand_.depth_dim)];
  const Index extent = l_.map(b_operand_.view->slices[static_cast<size_t>(b_operand_.depth_dim)].extent);
  const bool clipped = depth_ == b_operand_.depth_valid;
  panel_depth_ = clipped ? size : extent.constant() ? ceildiv(size, extent) * extent : extent;
  is_shared_ = less(l_.number(1), sharing_blocks());
  std::vector<Index> dropped;
  for (size_t d = 0; d < place.extents.size(); ++d) {
    if (static_cast<int>(d) != b_operand_.width_dim && static_cast<int>(d) != b_operand_.depth_dim)
      dropped.push_back(place.extents[d]);
  }
  const Index matrices = product(dropped, l_.number(1));
  const Index panels = shared_panels();
  const Index total = matrices * panels * ceildiv(panel_depth_, panel_shape().terms()) * panel_shape().row_bytes();
  const Index needed = is_shared_.constant() ? total : ir::select(is_shared_, total, l_.number(0));
  workspace_ = l_.arguments_.add_workspace(fmt::format("panels of {}", b_operand_.view->buffer->name), needed);
  PackRequest request{.buffer = b_operand_.view->buffer,
                      .width_dim = b_operand_.width_dim,
                      .depth_dim = b_operand_.depth_dim,
                      .shape = panel_shape(),
                      .workspace = workspace_,
                      .panels = panels,
                      .panel_depth = panel_depth_,
                      .matrices = matrices,
                      .enabled = is_shared_,
                      .location = op_.location};
  l_.pack_requests_.push_back(std::move(request));
}

/// One launch that fills the panels of one operand, before the launch that reads them.
void Lowering::lower_packing(const PackRequest& r, size_t launch_position) {
  const std::string symbol = fmt::format("{}_pack{}", tile_.name, r.workspace);
  const Index groups = ceildiv(r.panels, kPanelsPerTask);
  const Index enabled = r.enabled.constant() ? groups : ir::select(r.enabled, groups, number(0));
  const std::vector<Index> blocks{enabled, ceildiv(r.panel_depth, kRowsPerTask), r.matrices};
  b_.set_region(vector_.body);
  b_.set_location(r.location);
  masks_.clear();
  ir::Op* func = b_.op(OpKind::Func, {}, ir::FuncAttributes{symbol, blocks, 1, 0});
  b_.region_of(func, std::vector<Type>(3, Type::scalar(DType::I64)), [&](const std::vector<Value*>& at) {
    for (size_t d = 0; d < 3; ++d) bounds_.declare(at[d], number(0), blocks[d] - 1);
    place_argument(tile_.tensor_position(r.buffer));
    const Placement& place = placement(r.buffer);
    const auto symbol_of = [&](const Value* v) { return vector_.indices().symbol(v); };
    const auto width = static_cast<size_t>(r.width_dim), depth = static_cast<size_t>(r.depth_dim);
    Operand o{.place = &place, .width_dim = r.width_dim, .depth_dim = r.depth_dim};
    o.width_stride = place.strides[width], o.depth_stride = place.strides[depth];
    o.width_valid = place.extents[width], o.depth_valid = place.extents[depth];
    o.base = number(0);
    Index rest = symbol_of(at[2]);
    for (size_t d = place.extents.size(); d-- > 0;) {
      if (d == width || d == depth) continue;
      o.base = o.base + floormod(rest, place.extents[d]) * place.strides[d];
      rest = floordiv(rest, place.extents[d]);
    }
    const Index panel_rows = ceildiv(r.panel_depth, r.shape.terms());
    const Index first = symbol_of(at[0]) * kPanelsPerTask, last = min(first + kPanelsPerTask, r.panels);
    const Index lo = symbol_of(at[1]) * kRowsPerTask, hi = min(lo + kRowsPerTask, r.panel_depth);
    Value* workspace = b_.argument(r.workspace);
    b_.for_loop(lo, hi, number(kRowsAtOnce), [&](const std::vector<Value*>& k) {
      bounds_.declare(k[0], lo, hi - 1);
      const Index k0 = symbol_of(k[0]);
      b_.for_loop(first, last, number(1), [&](const std::vector<Value*>& p) {
        bounds_.declare(p[0], first, last - 1);
        const Index row = (symbol_of(at[2]) * r.panels + symbol_of(p[0])) * panel_rows + floordiv(k0, r.shape.terms());
        emit_panel(o, r.shape, b_.offset(workspace, row * r.shape.row_bytes()),
                   symbol_of(p[0]) * r.shape.tile.columns(), k0, min(number(kRowsAtOnce), hi - k0));
        b_.yield({});
      });
      b_.yield({});
    });
    b_.op(OpKind::Return, {});
  });
  runtime::Launch launch;
  launch.symbol = symbol;
  for (Index extent : blocks) launch.grid.push_back(arguments_.expression(extent));
  launch.scratch_bytes = runtime::constant(0);
  recipe_.launches.insert(recipe_.launches.begin() + static_cast<std::ptrdiff_t>(launch_position), std::move(launch));
}

}  // namespace tilewright::plan::cpu
