// Products on the portable path: mma.sync where a row of the table fits, else multiply-adds.
#include <fmt/format.h>

#include "plan/gpu/lowering.h"
#include "target/gpu_matrix.h"

namespace tilewright::plan::gpu {

using ir::thread::Op;

namespace {

std::optional<target::Mma> mma_of(DType a, DType b, DType c) {
  using target::Mma;
  if (c == DType::F32 && a == b && a == DType::F16) return Mma::m16n8k16_f16;
  if (c == DType::F32 && a == b && a == DType::BF16) return Mma::m16n8k16_bf16;
  if (c == DType::F64 && a == b && a == DType::F64) return Mma::m8n8k4_f64;
  if (c != DType::I32) return std::nullopt;
  if (a == DType::I8 && b == DType::I8) return Mma::m16n8k32_s8;
  if (a == DType::U8 && b == DType::U8) return Mma::m16n8k32_u8;
  if (a == DType::U8 && b == DType::I8) return Mma::m16n8k32_u8s8;
  return std::nullopt;
}
std::optional<target::Mma> mma_of(const ir::GemmAttributes& a) {
  return mma_of(a.a.buffer->type.dtype, a.b.buffer->type.dtype, a.c.buffer->type.dtype);
}

/// Why no matrix instruction takes these types; empty when one does.
std::string why_not_types(const ir::GemmAttributes& a) {
  if (mma_of(a)) return {};
  if (a.c.buffer->type.dtype == DType::F32 && a.a.buffer->type.dtype == DType::F32)
    return "f32 products keep 24 bits, which tf32 would round to 11";
  return fmt::format("no row of the instruction table for {} by {} to {}", name(a.a.buffer->type.dtype),
                     name(a.b.buffer->type.dtype), name(a.c.buffer->type.dtype));
}

}  // namespace

Distribution Lowering::matrix_accumulator(const ir::GemmAttributes& a) const {
  const int64_t m = *a.c.buffer->type.shape[0].constant(), n = *a.c.buffer->type.shape[1].constant();
  return a.c.buffer->type.dtype == DType::F64 ? mma_accumulator_f64(m, n, warps_m_, warps_n_)
                                              : mma_accumulator(m, n, warps_m_, warps_n_);
}

bool Lowering::uses_mma(const ir::GemmAttributes& a) const { return why_not_mma(a).empty(); }

std::string Lowering::why_not_mma(const ir::GemmAttributes& a) const {
  if (!options_.tensor_cores) return "matrix instructions are switched off";
  if (std::string why = why_not_types(a); !why.empty()) return why;
  if (warps_m_ == 0) return "the tile does not divide among the warps of the block";
  if (!is_whole(a.a) || !is_whole(a.b) || !is_whole(a.c) || a.c.buffer->type.rank() != 2)
    return "a product of parts of tiles";
  if (!layouts_.contains(a.c.buffer)) return "the result is not a fragment in registers";
  if (a.b.buffer->type.space != ir::MemorySpace::Shared) return "the right operand is not in shared memory";
  if (a.a.buffer->type.space == ir::MemorySpace::Global) return "the left operand is not in shared memory";
  const int element = bytes(a.a.buffer->type.dtype);
  if (a.a.buffer->type.space == ir::MemorySpace::Fragment &&
      (element != 2 || a.transpose_a || !layouts_.contains(a.a.buffer)))
    return "the left operand's registers are not what the instruction reads";
  if (element == 1 && (a.transpose_a || !a.transpose_b)) return "8-bit operands must run along k";
  const target::MmaRow& row = target::row(*mma_of(a));
  const int64_t m = *a.c.buffer->type.shape[0].constant(), n = *a.c.buffer->type.shape[1].constant();
  const int64_t k = *a.a.buffer->type.shape[a.transpose_a ? 0 : 1].constant();
  if (m % (16 * warps_m_) == 0 && n % (8 * warps_n_) == 0 && k % row.k == 0) return {};
  return fmt::format("m must be a multiple of {}, n of {}, k of {}; the tile is {}x{}x{}", 16 * warps_m_, 8 * warps_n_,
                     row.k, m, n, k);
}

void Lowering::gemm(const ir::Op& o) {
  factors_.erase(o.as<ir::GemmAttributes>().c.buffer);
  const auto& a = o.as<ir::GemmAttributes>();
  accesses({a.a.buffer, a.b.buffer}, fragments_.contains(a.c.buffer) ? Buffers() : Buffers{a.c.buffer});
  const auto c = fragments_.find(a.c.buffer);
  const auto fragment_a = fragments_.find(a.a.buffer);
  const bool fits =
      uses_mma(a) && c != fragments_.end() &&
      (fragment_a == fragments_.end() || fragment_a->second.distribution.digits == c->second.distribution.digits);
  if (fits && c->second.distribution == matrix_accumulator(a)) {
    fact("gemm", fmt::format("mma.sync {} by each of {}x{} warps", target::row(*mma_of(a)).name, warps_m_, warps_n_),
         o.location);
    return a.c.buffer->type.dtype == DType::F64 ? gemm_mma_f64(a) : gemm_mma(a, o.location);
  }
  const std::string why = why_not_mma(a);
  fact("gemm", "multiply-adds by each thread: " + (why.empty() ? "its layout is another product's" : why), o.location);
  gemm_simt(a, o.location);
}

void Lowering::gemm_simt(const ir::GemmAttributes& a, const Location& location) {
  const DType da = a.a.buffer->type.dtype, db = a.b.buffer->type.dtype, dc = a.c.buffer->type.dtype;
  const DType dtype = compute_type(dc);
  const Scalar type = register_type(dtype);
  const auto extents_a = static_extents(a.a, location), extents_c = static_extents(a.c, location);
  const int64_t depth = extents_a[a.transpose_a ? 0 : 1];
  // Operands in registers are laid out in shared memory first.
  std::vector<std::pair<const ir::Value*, Fragment>> moved;
  for (const ir::Value* v : {a.a.buffer, a.b.buffer}) {
    const auto f = fragments_.find(v);
    if (f == fragments_.end()) continue;
    moved.emplace_back(v, to_shared(v, location));
  }
  if (!moved.empty()) barrier();
  const auto element = [&](const ir::View& view, DType from, bool transposed, Affine row, Affine column) {
    Coordinates at = {row, column};
    if (transposed) std::swap(at[0], at[1]);
    return cast(compute_type(from), dtype, load(view.buffer, view_coordinates(view, at), 0, 1));
  };
  const auto c = fragments_.find(a.c.buffer);
  if (c != fragments_.end()) {
    const Distribution& d = c->second.distribution;
    if (!a.accumulate && !options_.plant.is("gpu_gemm", 1))  // plant 1: the old accumulator stays
      for (Reg r : c->second.registers) b_.assign(r, 0);
    const Operand row = thread_coordinate(d, 0), column = thread_coordinate(d, 1);
    // Padding rows and columns read inside the tile: their results are never stored.
    const auto clamped = [&](Operand x, int64_t offset, int64_t limit, bool exact) -> Affine {
      if (exact) return {x, offset};
      return {b_.min(Scalar::S32, b_.add(Scalar::S32, x, offset), limit - 1), 0};
    };
    const bool exact_rows = d.covers(0) <= d.shape[0], exact_columns = d.covers(1) <= d.shape[1];
    b_.for_range(0, depth, 1, [&](Reg k) {
      index_.push();
      std::unordered_map<int, Operand> left, right;
      for (size_t r = 0; r < d.registers.size(); ++r) {
        const int i = d.registers[r][0], j = d.registers[r][1];
        if (!left.contains(i))
          left[i] = element(a.a, da, a.transpose_a, clamped(row, i, d.shape[0], exact_rows), {k, 0});
        if (!right.contains(j))
          right[j] = element(a.b, db, a.transpose_b, {k, 0}, clamped(column, j, d.shape[1], exact_columns));
        const Reg out = c->second.registers[r];
        if (is_float(dtype))
          b_.ternary_into(out, Op::Fma, type, left[i], right[j], out);
        else
          b_.assign(out, normalised(dtype, b_.mad(type, left[i], right[j], out)));
      }
      index_.pop();
    });
    if (dtype != dc)
      for (Reg r : c->second.registers) b_.assign(r, rounded(dc, r));
  } else {
    for_elements(extents_c, nullptr, [&](const Coordinates& at, int, Operand guard) {
      const Coordinates where = view_coordinates(a.c, at);
      const Reg total = b_.copy_of(a.accumulate ? load(a.c.buffer, where, 0, guard) : Operand(0), type);
      b_.for_range(0, depth, 1, [&](Reg k) {
        index_.push();
        const Operand x = element(a.a, da, a.transpose_a, at[0], {k, 0}),
                      y = element(a.b, db, a.transpose_b, {k, 0}, at[1]);
        b_.assign(total, normalised(dtype, b_.mad(type, x, y, total)));
        index_.pop();
      });
      store(a.c.buffer, where, total, guard);
    });
  }
  if (!moved.empty()) barrier();
  for (auto& [v, fragment] : moved) {
    shared_.erase(v);  // only read: the registers still hold it
    fragments_[v] = std::move(fragment);
  }
}

// One rolled loop over k in steps of 16; per step ldmatrix for both operands, then every 16x8 site.
void Lowering::gemm_mma(const ir::GemmAttributes& a, const Location&) {
  const target::Mma which = *mma_of(a);
  const int k_step = target::row(which).k, piece = 16 / bytes(a.a.buffer->type.dtype);  // elements of 16 bytes
  const Fragment& c = fragments_.at(a.c.buffer);
  const int64_t m = c.distribution.shape[0], n = c.distribution.shape[1];
  const int rows = static_cast<int>(m / warps_m_), columns = static_cast<int>(n / warps_n_);
  const auto depth = *a.a.buffer->type.shape[a.transpose_a ? 0 : 1].constant();
  const auto fragment_a = fragments_.find(a.a.buffer);
  if (!a.accumulate)
    for (Reg r : c.registers) b_.assign(r, 0);
  const Operand lane = b_.rem(Scalar::U32, thread_, 32), warp = b_.div(Scalar::U32, thread_, 32);
  const Operand warp_m = b_.rem(Scalar::U32, warp, warps_m_), warp_n = b_.div(Scalar::U32, warp, warps_m_);
  const Operand first_row = b_.mul(Scalar::U32, warp_m, rows), first_column = b_.mul(Scalar::U32, warp_n, columns);
  const Operand row_in_tile = b_.rem(Scalar::U32, lane, 8),
                tile_bit0 = b_.rem(Scalar::U32, b_.div(Scalar::U32, lane, 8), 2),
                tile_bit1 = b_.div(Scalar::U32, lane, 16);
  // ldmatrix.x4: lanes 8t..8t+7 give the row addresses of 8x8 tile t.
  const auto tiles = [&](const ir::Value* buffer, Affine r, Affine col, bool transposed) {
    int immediate = 0;
    Coordinates at = {r, col};
    Operand address = shared_address(shared_.at(buffer), buffer->type, at, immediate);
    address = b_.add(Scalar::U32, address, immediate);
    std::vector<Reg> out = b_.regs(4, Scalar::B32);
    b_.emit(Op::LdMatrix, out, {address}, {4, transposed ? 1 : 0});
    return out;
  };
  const auto step = [&](Operand k, int k_constant) {
    std::vector<std::vector<Reg>> left;
    for (int i = 0; i < rows; i += 16) {
      if (fragment_a != fragments_.end()) {
        const Fragment& f = fragment_a->second;
        const Scalar pair = a.a.buffer->type.dtype == DType::F16 ? Scalar::F16x2 : Scalar::BF16x2;
        std::vector<Reg> regs;
        for (const auto& [dr, dk] : {std::pair{0, 0}, {8, 0}, {0, 8}, {8, 8}}) {
          const int x = f.distribution.find({i + dr, k_constant + dk}),
                    y = f.distribution.find({i + dr, k_constant + dk + 1});
          regs.push_back(b_.pack_pair(pair, f.registers[static_cast<size_t>(x)], f.registers[static_cast<size_t>(y)]));
        }
        left.push_back(std::move(regs));
        continue;
      }
      // Tiles in register order: (rows 0-7, k 0-7), (rows 8-15, k 0-7), (rows 0-7, k 8-15), (rows 8-15, k 8-15).
      if (!a.transpose_a) {
        const Operand r = b_.add(Scalar::U32, first_row, b_.mad(Scalar::U32, tile_bit0, 8, row_in_tile));
        left.push_back(tiles(a.a.buffer, {r, i}, {b_.mad(Scalar::U32, tile_bit1, piece, k), 0}, false));
      } else {
        const Operand kr = b_.add(Scalar::U32, k, b_.mad(Scalar::U32, tile_bit1, 8, row_in_tile));
        left.push_back(tiles(a.a.buffer, {kr, 0}, {b_.mad(Scalar::U32, tile_bit0, 8, first_row), i}, true));
      }
    }
    for (int j = 0; j < columns; j += 16) {
      std::vector<Reg> right;  // (k 0-7, n 0-7), (k 8-15, n 0-7), (k 0-7, n 8-15), (k 8-15, n 8-15)
      const bool half = columns - j < 16;
      const Operand shift = half ? Operand(0) : b_.mul(Scalar::U32, tile_bit1, 8);
      if (!a.transpose_b) {
        const Operand kr = b_.add(Scalar::U32, k, b_.mad(Scalar::U32, tile_bit0, 8, row_in_tile));
        const bool swapped = options_.plant.is("gpu_gemm", 2);  // plant 2: tiles of B not transposed
        right = tiles(a.b.buffer, {kr, 0}, {b_.add(Scalar::U32, first_column, shift), j}, !swapped);
      } else {
        const Operand nr = b_.add(Scalar::U32, first_column, b_.add(Scalar::U32, shift, row_in_tile));
        right = tiles(a.b.buffer, {nr, j}, {b_.mad(Scalar::U32, tile_bit0, piece, k), 0}, false);
      }
      for (int jj = 0; jj < (half ? 8 : 16); jj += 8)
        for (int i = 0; i < rows; i += 16) {
          const auto& l = left[static_cast<size_t>(i / 16)];
          std::vector<Reg> out;
          for (const auto& [dr, dc] : {std::pair{0, 0}, {0, 1}, {8, 0}, {8, 1}})
            out.push_back(c.registers[static_cast<size_t>(c.distribution.find({i + dr, j + jj + dc}))]);
          std::vector<Operand> in(l.begin(), l.end());
          in.push_back(right[static_cast<size_t>(jj / 4)]);
          in.push_back(right[static_cast<size_t>(jj / 4 + 1)]);
          in.insert(in.end(), out.begin(), out.end());
          b_.emit(Op::Mma, out, in, {static_cast<int>(which)});
        }
    }
  };
  if (fragment_a != fragments_.end()) {
    for (int k = 0; k < depth; k += 16) step(k, k);
  } else {
    const int64_t last = options_.plant.is("gpu_gemm", 3) ? depth - k_step : depth;  // plant 3: the last step is lost
    b_.for_range(0, last, k_step, [&](Reg k) {
      index_.push();
      step(k, 0);
      index_.pop();
    });
  }
}

// One number a lane of either operand, so that any layout of shared memory serves.
void Lowering::gemm_mma_f64(const ir::GemmAttributes& a) {
  const Fragment& c = fragments_.at(a.c.buffer);
  const int rows = static_cast<int>(c.distribution.shape[0] / warps_m_),
            columns = static_cast<int>(c.distribution.shape[1] / warps_n_);
  const auto depth = *a.a.buffer->type.shape[a.transpose_a ? 0 : 1].constant();
  if (!a.accumulate)
    for (Reg r : c.registers) b_.assign(r, 0, Scalar::B64);
  const Operand lane = b_.rem(Scalar::U32, thread_, 32), warp = b_.div(Scalar::U32, thread_, 32);
  const Operand outer = b_.div(Scalar::U32, lane, 4), inner = b_.rem(Scalar::U32, lane, 4);
  const Operand row = b_.mad(Scalar::U32, b_.rem(Scalar::U32, warp, warps_m_), rows, outer);
  const Operand column = b_.mad(Scalar::U32, b_.div(Scalar::U32, warp, warps_m_), columns, outer);
  const auto element = [&](const ir::Value* tile, bool swapped, Affine first, Affine second) {
    if (swapped) std::swap(first, second);
    return load(tile, {first, second}, 0, 1);
  };
  b_.for_range(0, depth, 4, [&](Reg k) {
    index_.push();
    const Affine at_k = {b_.add(Scalar::U32, k, inner), 0};
    std::vector<Operand> left, right;
    for (int i = 0; i < rows; i += 8) left.push_back(element(a.a.buffer, a.transpose_a, {row, i}, at_k));
    for (int j = 0; j < columns; j += 8) right.push_back(element(a.b.buffer, a.transpose_b, at_k, {column, j}));
    for (int i = 0; i < rows; i += 8)
      for (int j = 0; j < columns; j += 8) {
        std::vector<Reg> out;
        for (int e = 0; e < 2; ++e) out.push_back(c.registers[static_cast<size_t>(c.distribution.find({i, j + e}))]);
        b_.emit(Op::Mma, out, {left[static_cast<size_t>(i / 8)], right[static_cast<size_t>(j / 8)], out[0], out[1]},
                {static_cast<int>(target::Mma::m8n8k4_f64)});
      }
    index_.pop();
  });
}

}  // namespace tilewright::plan::gpu
