#include "plan/cpu/gemm_lowering.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::plan::cpu {

using ir::Index;
using ir::OpKind;
using ir::Type;
using ir::Value;

namespace {

/// Rows of C that repay packing B with vectors of 256 bits; multiplying by twice as wide ones takes half as long. Fewer
/// do when other blocks read the panel too, or inside a loop of the author's, where panels are small.
constexpr int64_t kMinRowsToPack = 50, kMinRowsToShare = 24;
/// Depth block of a B read where it lies: so few rows of the tensor at a time that memory is read along them. Entering
/// and leaving C for very few rows costs next to nothing.
constexpr int64_t kDepthInPlace = 128, kDepthOfFewRows = 16;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

GemmLowering::GemmLowering(Lowering& lowering, const ir::Op& op, const ir::Op* next)
    : l_(lowering), op_(op), next_(next), attributes_(op.as<ir::GemmAttributes>()), b_(lowering.b_) {
  compute_ = compute_type(attributes_.c.buffer->type.dtype);
  const auto extents = attributes_.c.extents();
  rows_ = extents[0].constant().value_or(0), columns_ = extents[1].constant().value_or(0);
  if (rows_ == 0 || columns_ == 0) return;
  tile_ = choose_register_tile(l_.cpu_, rows_, columns_, compute_);
  depth_block_ = choose_depth_block(l_.cpu_, tile_, compute_);
  a_ = operand(attributes_.a, !attributes_.transpose_a);
  b_operand_ = operand(attributes_.b, attributes_.transpose_b);
  c_ = &l_.placement(attributes_.c.buffer);
}

/// Strides, starts and clipped extents of an operand; conditions that could not be proven are collected in `holds`.
Operand GemmLowering::operand(const ir::View& view, bool depth_is_last) const {
  Operand out{.view = &view, .place = &l_.placement(view.buffer)};
  out.is_global = view.buffer->type.space == ir::MemorySpace::Global;
  int kept[2] = {0, 0}, n = 0;
  out.base = l_.number(0);
  const auto require = [&](Index condition) { out.holds = out.holds ? logical_and(out.holds, condition) : condition; };
  for (size_t d = 0; d < view.slices.size(); ++d) {
    const ir::Slice& s = view.slices[d];
    const Index start = l_.map(s.start);
    out.base = out.base + start * out.place->strides[d];
    if (!l_.bounds_.is_never_negative(start)) require(less_equal(l_.number(0), start));
    if (s.keep && n < 2) kept[n] = static_cast<int>(d);
    n += s.keep;
    if (!s.keep && !l_.bounds_.is_never_less(out.place->extents[d] - 1, start))
      require(less(start, out.place->extents[d]));
  }
  out.width_dim = kept[depth_is_last ? 0 : 1], out.depth_dim = kept[depth_is_last ? 1 : 0];
  const auto describe = [&](int dim, Index& start, Index& stride, Index& valid) {
    const auto d = static_cast<size_t>(dim);
    start = l_.map(view.slices[d].start), stride = out.place->strides[d];
    const Index extent = l_.map(view.slices[d].extent), size = out.place->extents[d];
    if (l_.bounds_.is_never_less(size, start + extent)) {
      valid = extent;
      return;
    }
    valid = l_.bounds_.is_never_less(start + extent, size) ? size - start : min(extent, size - start);
    if (!l_.bounds_.is_never_less(size, start)) valid = max(valid, l_.number(0));
  };
  describe(out.width_dim, out.width_start, out.width_stride, out.width_valid);
  describe(out.depth_dim, out.depth_start, out.depth_stride, out.depth_valid);
  return out;
}

std::string GemmLowering::obstacle() const {
  if (rows_ == 0 || columns_ == 0) return "the C tile's extents are not constant";
  const auto& c = attributes_.c;
  if (c.buffer->type.space == ir::MemorySpace::Global) return "C is a global tensor";
  if (c.buffer->type.dtype != compute_) return "C is kept in a storage type";
  if (!c.slices.back().keep) return "C's columns are not contiguous";
  const bool whole = c.slices.size() == 2 && c.extents() == c.buffer->type.shape;
  if (!whole && (rows_ % tile_.rows != 0 || columns_ % tile_.columns() != 0))
    return "C is a part of a tile whose extents the register tile does not divide";
  if (c.slices.size() > 2 && std::count_if(c.slices.begin(), c.slices.end(), [](const auto& s) { return s.keep; }) != 2)
    return "C's rank";
  const DType from_a = compute_type(attributes_.a.buffer->type.dtype),
              from_b = compute_type(attributes_.b.buffer->type.dtype);
  if (is_float(from_a) != is_float(compute_) || is_float(from_b) != is_float(compute_))
    return "mixed float and integer operands";
  return {};
}

void GemmLowering::lower() {
  choose_operands();
  reserve_scratch();
  explain();
  Index holds = a_.holds;
  if (b_operand_.holds) holds = holds ? logical_and(holds, b_operand_.holds) : b_operand_.holds;
  if (!holds) return find_target(), lower_versions();
  b_.if_else(
      b_.index_condition(holds), [&](const std::vector<Value*>&) { lower_versions(), b_.yield({}); },
      [&](const std::vector<Value*>&) { l_.lower_plain_gemm(attributes_), b_.yield({}); });
}

/// Where each operand is read from.
void GemmLowering::choose_operands() {
  const bool same_clip = a_.is_global && b_operand_.is_global && a_.depth_valid == b_operand_.depth_valid;
  const Index extent = l_.map(attributes_.a.extents()[attributes_.transpose_a ? 0 : 1]);
  depth_ = same_clip ? a_.depth_valid : extent;
  live_rows_ = l_.live_extent(op_, 0, l_.number(rows_)), live_columns_ = l_.live_extent(op_, 1, l_.number(columns_));
  const bool a_is_inside = same_clip || a_.depth_valid == extent;
  const bool b_is_inside = same_clip || b_operand_.depth_valid == extent;
  copies_whole_rows_ =
      a_is_inside && a_.depth_dim > a_.width_dim && a_.depth_stride.is_constant(bytes(a_.place->storage));
  const bool can_read_a = a_.place->storage == compute_ && a_is_inside;
  repeats_last_row_ = a_.is_global && a_.width_valid == live_rows_ && (can_read_a || copies_whole_rows_);
  dot_ = find_dot(a_is_inside && b_is_inside);
  if (dot_) depth_block_ *= dot_->terms;
  packs_rows_ = dot_ || a_.place->storage != compute_ || (a_.is_global && !(repeats_last_row_ && can_read_a));

  const int64_t wide = l_.cpu_.vector_bits / 256;
  const bool can_read_b = !dot_ && b_is_inside && b_operand_.place->storage == compute_ &&
                          b_operand_.width_stride.is_constant(bytes(compute_));
  shares_ = rows_ >= kMinRowsToShare * wide && can_share();
  const int64_t least_rows = l_.loop_depth_ > 0 ? kMinRowsToShare : kMinRowsToPack;
  const bool rows_repay = rows_ >= least_rows * wide;
  reads_in_place_ = can_read_b && (!b_operand_.is_global || (!shares_ && !rows_repay));
  if (reads_in_place_ && b_operand_.is_global) depth_block_ = has_few_rows() ? kDepthOfFewRows : kDepthInPlace;
  // One narrow panel is all of B there is: its rows are neighbours in memory.
  reads_alone_in_place_ = shares_ && can_read_b && is_one_panel() && tile_.vectors < 4;
  has_alone_version_ = shares_ && can_read_b && !rows_repay && !reads_alone_in_place_;
}

void GemmLowering::reserve_scratch() {
  if (packs_rows_) {
    const int64_t rows = round_up(rows_, tile_.rows);
    const bool by_columns = a_.width_dim > a_.depth_dim;
    a_pitch_ = (by_columns ? rows : depth_block_) * bytes(a_element()) + 64;
    a_scratch_ = l_.reserve(a_pitch_ * (by_columns ? depth_block_ : rows));
    if (is_biased()) corrections_ = l_.reserve(rows * bytes(compute_));
  }
  if (shares_) request_packing();
  always_shares_ = shares_ && is_shared_.constant();
  has_alone_version_ &= !always_shares_;
  const bool packs_here = shares_ ? !always_shares_ && !reads_alone_in_place_ && !has_alone_version_ : !reads_in_place_;
  if (packs_here) b_scratch_ = l_.reserve(depth_block_ / panel_shape().terms() * panel_shape().row_bytes());
}

void GemmLowering::explain() {
  const auto say = [&](const char* what, std::string why) { l_.fact(what, std::move(why), op_.location); };
  say("gemm", fmt::format("{}x{} register tile of {}-lane {} ({} accumulators), depth block {}", tile_.rows,
                          tile_.columns(), tile_.lanes, name(compute_), tile_.rows * tile_.vectors, depth_block_));
  if (dot_) {
    say("gemm instruction",
        fmt::format("{}: {} products of {} a lane, exact{}", dot_->name, dot_->terms, name(dot_->a),
                    is_biased() ? "; B is kept as B + 128 and 128 times A's row sums are taken off" : ""));
  }
  say("gemm A", packs_rows_    ? "copied row by row into scratch with a padded pitch"
                : a_.is_global ? "read in place from the tensor: few rows at a time"
                               : "read in place from the tile");
  say("gemm B",
      shares_
          ? fmt::format("packed once and shared: several blocks read each panel and no block writes it{}",
                        reads_alone_in_place_ || has_alone_version_ ? "; read in place by a lone block of rows" : "")
      : reads_in_place_ && !b_operand_.is_global ? "read in place from the tile"
      : reads_in_place_ ? fmt::format("read in place: {} rows of C do not repay packing", rows_)
                        : "packed per block");
}

/// Twice where a lone block of rows reads B differently from blocks that share its panels.
void GemmLowering::lower_versions() {
  if (!has_alone_version_) return lower_blocks();
  b_.if_else(
      b_.index_condition(is_shared_),
      [&](const std::vector<Value*>&) {
        always_shares_ = true;
        lower_blocks();
        b_.yield({});
      },
      [&](const std::vector<Value*>&) {
        shares_ = false, reads_in_place_ = true, depth_block_ = kDepthInPlace;
        lower_blocks();
        b_.yield({});
      });
}

void GemmLowering::lower_blocks() {
  const auto loop = [&](Index hi, int64_t step, const std::function<void(Index)>& body) {
    const auto most = l_.bounds_.greatest(hi);
    if (most && *most <= step && l_.bounds_.is_never_less(hi, l_.number(1))) return body(l_.number(0));
    b_.for_loop(l_.number(0), hi, l_.number(step), [&](const std::vector<Value*>& v) {
      l_.bounds_.declare(v[0], l_.number(0), hi - 1);
      body(l_.vector_.indices().symbol(v[0]));
      b_.yield({});
    });
  };
  // A product over an empty range still overwrites C: then one block of depth 0.
  const bool needs_one = !attributes_.accumulate && !l_.bounds_.is_never_less(depth_, l_.number(1));
  loop(needs_one ? max(depth_, l_.number(1)) : depth_, depth_block_, [&](Index k0) {
    const Index depth =
        depth_.constant() && *depth_.constant() <= depth_block_ ? depth_ : min(l_.number(depth_block_), depth_ - k0);
    if (packs_rows_) pack_rows(k0, depth, ceildiv(live_rows_, tile_.rows) * tile_.rows);
    revisits_ = attributes_.accumulate || k0.constant() ? nullptr : b_.mask(k0, tile_.lanes);
    if (target_.is_used) open_target(k0, depth);
    loop(live_columns_, tile_.columns(), [&](Index column) {
      const Panel panel = find_panel(column, k0, depth);
      column_masks_.assign(static_cast<size_t>(tile_.vectors), nullptr);
      for (int v = 0; v < tile_.vectors && target_.is_used; ++v) {
        if (l_.bounds_.is_never_less(live_columns_, column + tile_.columns())) break;
        column_masks_[static_cast<size_t>(v)] = b_.mask(live_columns_ - column - int64_t{v} * tile_.lanes, tile_.lanes);
      }
      loop(live_rows_, tile_.rows, [&](Index row) { register_tile(row, column, panel, k0, depth); });
    });
  });
}

/// A's rows [0, rows) × [k0, k0 + depth) into scratch when both are contiguous in memory and depth is all there.
void GemmLowering::pack_whole_rows(Index k0, Index depth, Index rows) {
  const DType storage = a_.place->storage, element = a_element();
  const int lanes = l_.cpu_.vector_bits / bits(element);
  const Type type = Type::scalar(compute_type(storage), lanes);
  Value* from = b_.offset(a_.place->pointer, a_.base + k0 * a_.depth_stride);
  Value* to = b_.scratch(l_.number(a_scratch_));
  const auto symbol = [&](const Value* v) { return l_.vector_.indices().symbol(v); };
  b_.for_loop(l_.number(0), rows, l_.number(1), [&](const std::vector<Value*>& r) {
    l_.bounds_.declare(r[0], l_.number(0), rows - 1);
    const Index row = symbol(r[0]);
    const bool all_rows = repeats_last_row_ || l_.bounds_.is_never_less(a_.width_valid, row + 1);
    Value* source = b_.offset(from, live_row(row, 0) * a_.width_stride);
    Value* target = b_.offset(to, row * a_pitch_);
    const Index count = all_rows ? depth : ir::select(less(row, a_.width_valid), depth, l_.number(0));
    std::vector<Value*> sums;
    if (is_biased()) sums.push_back(b_.integer(DType::I32, 0, tile_.lanes));
    const auto copy = [&](Index k, Value* mask, Value* sum) {
      Value* x =
          b_.vload(source, {.storage = storage, .bytes = k * bytes(storage), .align = bytes(storage)}, type, mask);
      x = b_.cast(x, element);
      b_.vstore(target, {.storage = element, .bytes = k * bytes(element), .align = bytes(element)}, x);
      return sum ? add_row_sum(sum, x) : nullptr;
    };
    Value* row_mask = all_rows ? nullptr : b_.mask(count, lanes);
    const Index whole = floordiv(depth, lanes) * lanes;
    const ir::Op* loop = b_.for_loop(l_.number(0), whole, l_.number(lanes), sums, [&](const std::vector<Value*>& k) {
      Value* sum = copy(symbol(k[0]), row_mask, sums.empty() ? nullptr : k[1]);
      b_.yield(sum ? std::vector<Value*>{sum} : std::vector<Value*>{});
    });
    // The pitch leaves room for one vector beyond the last whole one.
    Value* sum = sums.empty() ? nullptr : loop->results[0];
    if (!(depth - whole).is_constant(0)) sum = copy(whole, b_.mask(count - whole, lanes), sum);
    if (sum) store_correction(row, sum);
    b_.yield({});
  });
}

/// A's rows [0, rows) × [k0, k0 + depth) into scratch, zeros outside the operand.
void GemmLowering::pack_rows(Index k0, Index depth, Index rows) {
  const Index valid = min(a_.width_valid, live_rows_);
  const bool by_columns = a_.width_dim > a_.depth_dim;
  const int64_t element = bytes(compute_);
  Placement to{.pointer = b_.scratch(l_.number(a_scratch_)), .storage = compute_};
  to.strides = {l_.number(by_columns ? element : a_pitch_), l_.number(by_columns ? a_pitch_ : element)};
  to.extents = {l_.number(round_up(rows_, tile_.rows)), l_.number(depth_block_)};
  const LaneChoice lanes{by_columns ? 0 : 1, l_.cpu_.vector_bits / bits(compute_)};
  const Index inside = min(depth, max(a_.depth_valid - k0, l_.number(0)));
  const Index loaded = l_.bounds_.is_never_less(a_.depth_valid, k0 + depth) ? depth : inside;
  if (copies_whole_rows_) return pack_whole_rows(k0, depth, rows);
  l_.nest({valid, loaded}, lanes, [&](const std::vector<Index>& at) {
    using At = std::vector<Index>;
    const Index k = k0 + at[1];
    Value* x = l_.load(*a_.place, l_.view_at(*a_.view, attributes_.transpose_a ? At{k, at[0]} : At{at[0], k}));
    l_.store(to, at, b_.cast(x, compute_));
  });
  const auto zeros = [&](Index row_lo, Index row_hi, Index k_lo, Index k_hi) {
    Value* zero = is_float(compute_) ? b_.real(compute_, 0, lanes.lanes) : b_.integer(compute_, 0, lanes.lanes);
    l_.nest({row_hi - row_lo, k_hi - k_lo}, lanes, [&](const std::vector<Index>& at) {
      l_.store(to, {row_lo + at[0], k_lo + at[1]}, zero);
    });
  };
  if (!(rows - valid).is_constant(0)) zeros(valid, rows, l_.number(0), depth);
  if (!(depth - loaded).is_constant(0)) zeros(l_.number(0), valid, loaded, depth);
}

bool Lowering::lower_gemm(const ir::Op& op, const ir::Op* next) {
  GemmLowering fast(*this, op, next);
  const std::string obstacle = options_.micro_kernels ? fast.obstacle() : "register tiles are switched off";
  if (obstacle.empty()) {
    fast.lower();
    return fast.took_next();
  }
  lower_plain_gemm(op.as<ir::GemmAttributes>());
  fact("gemm", "plain loops over lanes: " + obstacle, op.location);
  return false;
}

}  // namespace tilewright::plan::cpu
