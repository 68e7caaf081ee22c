// The register tile: MR rows by NR columns of C stay in registers over one depth block.
#include "plan/cpu/gemm_lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::OpKind;
using ir::Type;
using ir::Value;

namespace {

constexpr int kManySums = 12;  ///< from so many on, a step of k is long enough to need no unrolling

}  // namespace

/// The row of the C tile that row r of the register tile at `row` computes.
Index GemmLowering::live_row(Index row, int r) const {
  if (!repeats_last_row_ || l_.bounds_.is_never_less(live_rows_, row + (r + 1))) return row + r;
  return min(row + r, live_rows_ - 1);
}

/// MR × NR of C over one depth block.
void GemmLowering::register_tile(Index row, Index column, const Panel& panel, Index k0, Index depth) {
  const auto& c = attributes_.c;
  const size_t last = c.slices.size() - 1;
  size_t row_dim = 0;
  while (!c.slices[row_dim].keep) ++row_dim;
  Index c_bytes = row * c_->strides[row_dim] + column * c_->strides[last];
  for (size_t d = 0; d < c.slices.size(); ++d) c_bytes = c_bytes + l_.map(c.slices[d].start) * c_->strides[d];
  c_pitch_ = c_->strides[row_dim];
  Value* c_pointer = b_.offset(c_->pointer, c_bytes);
  prefetch_target(row, column);
  Cursor at{.b = panel.pointer, .next = next_panel(panel, row), .sums = start_sums(row, c_pointer, k0)};
  if (packs_rows_) {
    const bool by_columns = a_.width_dim > a_.depth_dim;
    at.a = b_.scratch(l_.number(a_scratch_) + row * (by_columns ? bytes(compute_) : a_pitch_));
  } else {
    at.a = b_.offset(a_.place->pointer,
                     a_.base + k0 * a_.depth_stride + (a_.is_global ? l_.number(0) : row * a_.width_stride));
  }
  const int unroll = tile_.rows * tile_.vectors >= kManySums ? 1 : 4;
  const Index steps = ceildiv(depth, panel_shape().terms()), whole = floordiv(steps, unroll) * unroll;
  at = multiply(std::move(at), panel, row, l_.number(0), whole, unroll);
  if (!(steps - whole).is_constant(0)) at = multiply(std::move(at), panel, row, whole, steps, 1);
  store_sums(row, column, c_pointer, at.sums);
}

/// From C's element of the register tile at `row` to the one in its row r. Where sums go straight to a tensor, rows
/// beyond the last live one are that row again.
Index GemmLowering::tile_row_bytes(Index row, int r) const {
  return target_.is_used ? (live_row(row, r) - row) * c_pitch_ : c_pitch_ * r;
}

/// C's elements, or zeros in the first depth block of a product that overwrites.
std::vector<Value*> GemmLowering::start_sums(Index row, Value* c_pointer, Index k0) {
  const Type type = Type::scalar(compute_, tile_.lanes);
  const bool from_zero = !attributes_.accumulate && k0.constant();
  Value* zero = is_float(compute_) ? b_.real(compute_, 0, tile_.lanes) : b_.integer(compute_, 0, tile_.lanes);
  std::vector<Value*> out;
  for (int r = 0; r < tile_.rows; ++r) {
    Value* extra = is_biased() ? correction(row + r) : nullptr;
    for (int v = 0; v < tile_.vectors; ++v) {
      const Index at = tile_row_bytes(row, r) + int64_t{v} * tile_.lanes * bytes(compute_);
      const ir::MemoryAttributes memory{.storage = compute_, .bytes = at, .align = bytes(compute_)};
      Value* start = from_zero ? zero : b_.vload(c_pointer, memory, type, revisits_);
      if (extra) start = from_zero ? extra : b_.binary(ir::BinaryOp::Add, start, extra);
      out.push_back(start);
    }
  }
  return out;
}

void GemmLowering::store_sums(Index row, Index column, Value* c_pointer, const std::vector<Value*>& sums) {
  Value* to = target_.is_used ? b_.offset(target_.pointer, column * bytes(compute_)) : c_pointer;
  size_t next = 0;
  for (int r = 0; r < tile_.rows; ++r) {
    const Index start = target_.is_used ? live_row(row, r) * target_.step : tile_row_bytes(row, r);
    for (int v = 0; v < tile_.vectors; ++v) {
      const Index at = start + int64_t{v} * tile_.lanes * bytes(compute_);
      b_.vstore(to, {.storage = compute_, .bytes = at, .align = bytes(compute_)}, sums[next++],
                column_masks_[static_cast<size_t>(v)]);
    }
  }
}

/// Starts fetching the tensor's lines that this tile will write when its sums are done.
void GemmLowering::prefetch_target(Index row, Index column) {
  if (!target_.is_used || is_one_panel() || tile_.rows * tile_.vectors < kManySums) return;
  Value* to = b_.offset(target_.pointer, column * bytes(compute_));
  for (int r = 0; r < tile_.rows; ++r) {
    for (int v = 0; v < tile_.vectors; ++v) {
      const Index at = live_row(row, r) * target_.step + int64_t{v} * tile_.lanes * bytes(compute_);
      b_.op(OpKind::Prefetch, {to}, ir::MemoryAttributes{.bytes = at});
    }
  }
}

/// Bytes of the next panel each row tile fetches per step of k; 0: too few row tiles to hide it.
int64_t GemmLowering::prefetch_bytes() const {
  const int64_t row_tiles = (rows_ + tile_.rows - 1) / tile_.rows;
  const int64_t share = (panel_shape().row_bytes() + row_tiles - 1) / row_tiles;
  return share > 64 ? 0 : share;
}

/// Where this row tile starts to fetch its part of the next panel.
Value* GemmLowering::next_panel(const Panel& panel, Index row) {
  if (!panel.next || is_one_panel() || prefetch_bytes() == 0 || tile_.rows * tile_.vectors < kManySums) return nullptr;
  const int64_t part = prefetch_bytes() * (depth_block_ / panel_shape().terms());
  return b_.offset(panel.next, floordiv(row, tile_.rows) * part);
}

void GemmLowering::prefetch(const Panel& panel, const Cursor& at, int unroll) {
  if (at.next) b_.op(OpKind::Prefetch, {at.next}, ir::MemoryAttributes{.bytes = l_.number(0), .streaming = true});
  if (!panel.next_is_beside || is_one_panel()) return;
  for (int u = 0; u < unroll; ++u) {
    for (int64_t line = 0; line < panel_shape().row_bytes(); line += 64) {
      const Index bytes = panel.step * u + (panel_shape().row_bytes() + line);
      b_.op(OpKind::Prefetch, {at.b}, ir::MemoryAttributes{.bytes = bytes, .streaming = true});
    }
  }
}

std::vector<Value*> GemmLowering::Cursor::values() const {
  std::vector<Value*> out{a, b};
  if (next) out.push_back(next);
  out.insert(out.end(), sums.begin(), sums.end());
  return out;
}

/// Steps [lo, hi); the positions are carried, so that a step adds constants instead of multiplying.
GemmLowering::Cursor GemmLowering::multiply(Cursor at, const Panel& panel, Index row, Index lo, Index hi, int unroll) {
  const bool by_columns = a_.width_dim > a_.depth_dim;
  const int64_t packed_step = by_columns ? a_pitch_ : bytes(a_element()) * panel_shape().terms();
  const Index a_step = packs_rows_ ? l_.number(packed_step) : a_.depth_stride;
  const bool has_next = at.next != nullptr;
  const auto cursor = [&](std::vector<Value*>::const_iterator v) {
    Cursor out{.a = v[0], .b = v[1], .next = has_next ? v[2] : nullptr};
    v += has_next ? 3 : 2;
    out.sums.assign(v, v + tile_.rows * tile_.vectors);
    return out;
  };
  const ir::Op* loop = b_.for_loop(lo, hi, l_.number(unroll), at.values(), [&](const std::vector<Value*>& v) {
    Cursor now = cursor(v.begin() + 1);
    prefetch(panel, now, unroll);
    for (int u = 0; u < unroll; ++u) multiply_once(now, panel, row, u);
    now.a = b_.offset(now.a, a_step * unroll), now.b = b_.offset(now.b, panel.step * unroll);
    if (has_next) now.next = b_.offset(now.next, l_.number(prefetch_bytes() * unroll));
    b_.yield(now.values());
  });
  return cursor(loop->results.begin());
}

/// The u-th step from here: one vector of each column group, one broadcast of each row.
void GemmLowering::multiply_once(Cursor& at, const Panel& panel, Index row, int u) {
  const bool by_columns = a_.width_dim > a_.depth_dim;
  const Index width = packs_rows_ ? l_.number(by_columns ? bytes(compute_) : a_pitch_) : a_.width_stride;
  const Index a_step =
      packs_rows_ ? l_.number(by_columns ? a_pitch_ : bytes(a_element()) * panel_shape().terms()) : a_.depth_stride;
  const DType b_element = dot_ ? dot_->b : compute_;
  const int lanes = tile_.lanes * panel_shape().terms();
  std::vector<Value*> y;
  for (int n = 0; n < tile_.vectors; ++n) {
    const Index bytes_at = panel.step * u + int64_t{n} * tile_.lanes * bytes(compute_);
    y.push_back(b_.vload(at.b, {.storage = b_element, .bytes = bytes_at, .align = bytes(compute_)},
                         Type::scalar(b_element, lanes),
                         panel.masks.empty() ? nullptr : panel.masks[static_cast<size_t>(n)]));
  }
  for (int r = 0; r < tile_.rows; ++r) {
    const Index start = packs_rows_ || !a_.is_global ? width * r : live_row(row, r) * width;
    Value* x = b_.vload(at.a, {.storage = compute_, .bytes = start + a_step * u, .align = bytes(compute_)},
                        Type::scalar(compute_));
    x = b_.broadcast(x, tile_.lanes);
    if (dot_)
      x = b_.op(OpKind::Unary, {x}, ir::UnaryAttributes{ir::UnaryOp::Bitcast}, {Type::scalar(dot_->a, lanes)})
              ->result();
    for (int n = 0; n < tile_.vectors; ++n) {
      Value*& sum = at.sums[static_cast<size_t>(r * tile_.vectors + n)];
      Value* with = y[static_cast<size_t>(n)];
      if (is_float(compute_) || dot_)
        sum = b_.op(OpKind::Fma, {x, with, sum}, {}, {sum->type})->result();
      else
        sum = b_.binary(ir::BinaryOp::Add, sum, b_.binary(ir::BinaryOp::Mul, x, with));
    }
  }
}

}  // namespace tilewright::plan::cpu
