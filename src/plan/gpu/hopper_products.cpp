// Products: descriptors, operands in registers, the loop of products, and the store of a result tile.
#include "plan/gpu/hopper_form.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;

bool HopperForm::is_deferred(const ir::Op& op) const {
  bool any = false;
  for (const ir::Op* inner : op.regions[0]->ops) {
    if (inner->kind == OpKind::Gemm) {
      const auto& a = inner->as<ir::GemmAttributes>();
      if (!a.accumulate || !is_shared_tile(a.a.buffer)) return false;
      any = true;
    } else if (!inner->regions.empty()) {
      return false;
    } else if (inner->kind != OpKind::Copy && inner->kind != OpKind::Yield && inner->kind != OpKind::IndexValue) {
      return false;
    } else if (inner->kind == OpKind::Copy && !copies_.contains(inner->as<ir::CopyAttributes>().dst.buffer)) {
      return false;
    }
  }
  if (!any) return false;
  for (const Ring& r : rings_) {
    if (r.home == op.regions[0])
      return std::count_if(rings_.begin(), rings_.end(), [&](const Ring& x) { return x.home == op.regions[0]; }) == 1;
  }
  return false;
}

void HopperForm::product_loop(const ir::Op& op) {
  Ring& r = *std::find_if(rings_.begin(), rings_.end(), [&](const Ring& x) { return x.home == op.regions[0]; });
  const Reg previous = b_.copy_of(0);
  const Reg any = b_.copy_of(0);
  loop(op, [&] {
    wait(r);
    for (const ir::Op* inner : op.regions[0]->ops)
      if (inner->kind == OpKind::Gemm) product(*inner, *op.regions[0]);
    b_.emit(Op::WgmmaWait, {}, {}, {1});
    const bool is_early = l_.options_.plant.is("gpu_ring", 3);  // plant 3: the stage still being read is given back
    release(r, is_early ? r.stage : previous, b_.compare(Compare::Ne, Scalar::S32, any, 0));
    b_.assign(previous, r.stage);
    b_.assign(any, 1);
    advance(r);
  });
  if (!l_.options_.plant.is("gpu_products", 1)) finish_products();  // plant 1: accumulators are read too early
  release(r, previous, b_.compare(Compare::Ne, Scalar::S32, any, 0));
}

std::pair<Operand, Operand> HopperForm::descriptor(const ir::Value* v, bool along_k) {
  const Ring* r = nullptr;
  const Staged& t = staged(v, &r);
  const Operand address = b_.add(Scalar::U32, stage_address(*r), t.offset);
  const target::MatrixDescriptor d{0, along_k ? 16u : static_cast<uint32_t>(t.panel_bytes()),
                                   static_cast<uint32_t>(8 * t.span), t.swizzle};
  const uint64_t bits = target::encode(d);
  const Operand low = b_.bit_or(Scalar::B32, b_.shr(Scalar::U32, address, 4), static_cast<int64_t>(bits & 0xffffffff));
  return {low, static_cast<int64_t>(bits >> 32)};
}

int HopperForm::step_offset(const Staged& t, bool along_k, int k, int mn) {
  if (along_k) return k * t.element / t.span * t.panel_bytes() + k * t.element % t.span + mn * t.span;
  return k * t.span + mn * t.element / t.span * t.panel_bytes() + mn * t.element % t.span;
}

void HopperForm::pack_operand(const ir::GemmAttributes& a) {
  const Fragment& f = l_.fragments_.at(a.a.buffer);
  const Scalar pair = a.a.buffer->type.dtype == DType::F16 ? Scalar::F16x2 : Scalar::BF16x2;
  const int rows = static_cast<int>(rows_) / groups_;
  size_t next = 0;
  for (int k = 0; k < static_cast<int>(extent_of(a.a.buffer, 1)); k += 16)
    for (int site = 0; site < rows; site += 64)
      for (const auto& [dr, dk] : {std::pair{0, 0}, {8, 0}, {0, 8}, {8, 8}}) {
        ir::thread::Inst& inst =
            b_.emit(Op::PackPair, {packed_[next++]},
                    {f.registers[static_cast<size_t>(f.distribution.find({site + dr, k + dk}))],
                     f.registers[static_cast<size_t>(f.distribution.find({site + dr, k + dk + 1}))]});
        inst.type = pair;
      }
}

void HopperForm::product(const ir::Op& op, const ir::Region&, bool is_packed) {
  const auto& a = op.as<ir::GemmAttributes>();
  l_.factors_.erase(a.c.buffer);
  const target::Wgmma which = *wgmma_of(a.a.buffer->type.dtype, a.b.buffer->type.dtype, a.c.buffer->type.dtype);
  const int step = target::row(which).k;
  const auto n = static_cast<int>(extent_of(a.c.buffer, 1));
  const auto depth = static_cast<int>(extent_of(a.a.buffer, a.transpose_a ? 0 : 1));
  const Fragment& c = l_.fragments_.at(a.c.buffer);
  const int rows = static_cast<int>(rows_) / groups_;
  const bool from_registers = is_fragment(a.a.buffer);
  const Ring* ring = nullptr;
  const Staged& tb = staged(a.b.buffer, &ring);
  const auto [b_low, b_high] = descriptor(a.b.buffer, a.transpose_b);
  std::pair<Operand, Operand> da{0, 0};
  const Staged* ta = nullptr;
  if (from_registers) {
    if (!is_packed) {
      packed_ = b_.regs(depth / 16 * (rows / 64) * 4, Scalar::B32);
      pack_operand(a);
    }
  } else {
    ta = &staged(a.a.buffer, &ring);
    da = descriptor(a.a.buffer, !a.transpose_a);
    // This warpgroup's rows.
    const int shift = step_offset(*ta, !a.transpose_a, 0, rows);
    da.first = b_.mad(Scalar::U32, group_, shift / 16, da.first);
  }
  b_.emit(Op::WgmmaFence);
  for (int k = 0; k < depth; k += step)
    for (int site = 0; site < rows; site += 64) {
      std::vector<Operand> in = {a.accumulate || k > 0 ? true_ : false_};
      if (from_registers) {
        const size_t first = static_cast<size_t>((k / 16 * (rows / 64) + site / 64) * 4);
        for (size_t i = 0; i < 4; ++i) in.push_back(packed_[first + i]);
      } else {
        in.push_back(b_.join(Scalar::B64, b_.add(Scalar::U32, da.first, step_offset(*ta, !a.transpose_a, k, site) / 16),
                             da.second));
      }
      in.push_back(b_.join(Scalar::B64, b_.add(Scalar::U32, b_low, step_offset(tb, a.transpose_b, k, 0) / 16), b_high));
      const auto per_site = static_cast<std::ptrdiff_t>(n / 2);
      const auto begin = c.registers.begin() + site / 64 * per_site;
      b_.emit(Op::Wgmma, std::vector<Reg>(begin, begin + per_site), in,
              {static_cast<int>(which), n, from_registers, a.transpose_a, !a.transpose_b});
    }
  b_.emit(Op::WgmmaCommit);
}

// Registers to shared memory by stmatrix, then one bulk store per 64 columns; the next tile's products run meanwhile.
void HopperForm::store_tile(const ir::Op& op) {
  const auto& a = op.as<ir::CopyAttributes>();
  const Fragment& f = l_.fragments_.at(a.src.buffer);
  const auto n = static_cast<int>(extent_of(a.src.buffer, 1));
  const int rows = static_cast<int>(rows_) / groups_;
  const Scalar pair = a.dst.buffer->type.dtype == DType::F16 ? Scalar::F16x2 : Scalar::BF16x2;
  const Operand leads = b_.compare(Compare::Eq, Scalar::U32, in_group_, 0);
  const Operand barrier = b_.add(Scalar::U32, group_, 2);
  const int group_bytes = rows * n * 2;
  const Operand mine = b_.mad(Scalar::U32, group_, group_bytes, shared(staging_));
  if (!l_.options_.plant.is("gpu_products", 3))  // plant 3: the last store may still read what is overwritten here
    b_.if_then(leads, [&] { b_.emit(Op::BulkWait, {}, {}, {0, 1}); });
  b_.emit(Op::Barrier, {}, {barrier, 128});
  // Lane l writes row l%16 of its warp's 16, chunk 2q + l/16 of the 128-byte line, XORed with the row.
  const Operand row = b_.bit_and(Scalar::U32, lane_, 15);
  const Operand warp = b_.div(Scalar::U32, in_group_, 32);
  const Operand line = b_.mad(Scalar::U32, b_.mad(Scalar::U32, warp, 16, row), 128, mine);
  std::vector<Operand> chunk;
  for (int q = 0; q < 4; ++q) {
    const Operand c = b_.bit_xor(Scalar::U32, b_.add(Scalar::U32, b_.div(Scalar::U32, lane_, 16), 2 * q),
                                 b_.bit_and(Scalar::U32, lane_, 7));
    chunk.push_back(b_.mad(Scalar::U32, c, 16, line));
  }
  const auto per_site = static_cast<size_t>(n / 2);
  for (int site = 0; site < rows; site += 64)
    for (int column = 0; column < n; column += 16) {
      const size_t first = static_cast<size_t>(site / 64) * per_site + static_cast<size_t>(column / 2);
      std::vector<Operand> in = {b_.in_register(b_.add(Scalar::U32, chunk[static_cast<size_t>(column / 16 % 4)],
                                                       (site / 64 * (n / 64) + column / 64) * 8192))};
      for (size_t i = 0; i < 4; ++i)
        in.push_back(b_.pack_pair(pair, f.registers[first + 2 * i], f.registers[first + 2 * i + 1]));
      b_.emit(Op::StMatrix, {}, in, {4, 0});
    }
  if (!l_.options_.plant.is("gpu_products", 2)) b_.emit(Op::FenceAsync);  // plant 2: the copy engine reads old bytes
  b_.emit(Op::Barrier, {}, {barrier, 128});
  b_.if_then(leads, [&] {
    l_.index_.push();  // what one thread works out here is not known to the others
    for (int site = 0; site < rows; site += 64)
      for (int column = 0; column < n; column += 64) {
        std::vector<Operand> in = {
            b_.in_register(b_.add(Scalar::U32, mine, (site / 64 * (n / 64) + column / 64) * 8192)),
            b_.param_address(store_maps_.at(&op))};
        for (const Operand& x : coordinates(op, a.dst, b_.mad(Scalar::U32, group_, rows, site), column))
          in.push_back(x);
        b_.emit(Op::TmaStore, {}, in);
      }
    b_.emit(Op::BulkCommit);
    l_.index_.pop();
  });
}

}  // namespace tilewright::plan::gpu
