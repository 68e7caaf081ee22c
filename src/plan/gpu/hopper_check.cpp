// What a grid must hold to have a Hopper form, and the layouts of its fragments.
#include "plan/gpu/hopper_form.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;

std::optional<target::Wgmma> wgmma_of(DType a, DType b, DType c) {
  using target::Wgmma;
  if (a == DType::I8 && b == DType::I8 && c == DType::I32) return Wgmma::k32_s8;
  if (a == DType::U8 && b == DType::U8 && c == DType::I32) return Wgmma::k32_u8;
  if (c != DType::F32) return std::nullopt;
  if (a == DType::BF16 && b == DType::BF16) return Wgmma::k16_bf16;
  if (a == DType::F16 && b == DType::F16) return Wgmma::k16_f16;
  if (a == DType::E4M3 && b == DType::E4M3) return Wgmma::k32_e4m3;
  if (a == DType::E4M3 && b == DType::E5M2) return Wgmma::k32_e4m3_e5m2;
  if (a == DType::E5M2 && b == DType::E4M3) return Wgmma::k32_e5m2_e4m3;
  if (a == DType::E5M2 && b == DType::E5M2) return Wgmma::k32_e5m2;
  return std::nullopt;
}

void HopperForm::check() {
  for (const ir::Op* op : l_.ops_) {
    if (op->hints.layout == ir::LayoutHint::Rows || op->hints.layout == ir::LayoutHint::Padded)
      throw No{fmt::format("the hint {}: tiles for wgmma are swizzled", to_text(op->hints))};
    check_shared_writes(*op);
    switch (op->kind) {
      case OpKind::Gemm: check_gemm(*op); break;
      case OpKind::Scan:
      case OpKind::ReduceArg:
      case OpKind::ArriveLast:
      case OpKind::AtomicTile:
      case OpKind::Assert:
      case OpKind::Print:
      case OpKind::While: throw No{fmt::format("{} has no Hopper form", ir::info(op->kind).mnemonic)};
      case OpKind::Reduce:
        if (!is_fragment(op->as<ir::ReduceAttributes>().src.buffer) ||
            op->as<ir::ReduceAttributes>().dim != op->as<ir::ReduceAttributes>().src.buffer->type.rank() - 1)
          throw No{"a reduction across rows"};
        break;
      case OpKind::Load: read_.insert(op->as<ir::AccessAttributes>().buffer); break;
      case OpKind::Store: written_.insert(op->as<ir::AccessAttributes>().buffer); break;
      case OpKind::Copy: {
        const auto& a = op->as<ir::CopyAttributes>();
        read_.insert(a.src.buffer);
        written_.insert(a.dst.buffer);
        if (is_shared_tile(a.dst.buffer)) check_copy(*op);
        break;
      }
      default: break;
    }
  }
  if (gemms_.empty()) throw No{"no matrix product"};
  for (const ir::Value* v : read_) {
    if (is_global(v) && written_.contains(v)) throw No{fmt::format("{} is both read and written", v->name)};
    if (is_shared_tile(v)) throw No{fmt::format("shared tile {} is read by more than products", v->name)};
  }
  l_.find_global_uses();
  for (const ir::Value* v : l_.rewritten_globals_)
    if (is_global(v)) throw No{fmt::format("{} is written by several operations or turns of a loop", v->name)};
}

/// Shared tiles are stages of rings: only copies from global memory (check_copy) may fill them.
void HopperForm::check_shared_writes(const ir::Op& op) {
  const ir::Value* written = nullptr;
  if (op.kind == OpKind::Store) written = op.as<ir::AccessAttributes>().buffer;
  if (op.kind == OpKind::Atomic) written = op.as<ir::AtomicAttributes>().buffer;
  if (op.kind == OpKind::Fill) written = op.as<ir::FillAttributes>().dst.buffer;
  if (op.kind == OpKind::Reduce) written = op.as<ir::ReduceAttributes>().dst.buffer;
  if (op.kind == OpKind::Gemm) written = op.as<ir::GemmAttributes>().c.buffer;
  if (written && is_shared_tile(written))
    throw No{fmt::format("shared tile {} is written by more than copies", written->name)};
}

void HopperForm::check_gemm(const ir::Op& op) {
  const auto& a = op.as<ir::GemmAttributes>();
  const auto which = wgmma_of(a.a.buffer->type.dtype, a.b.buffer->type.dtype, a.c.buffer->type.dtype);
  if (!which) throw No{"no wgmma for these types"};
  const target::WgmmaRow& row = target::row(*which);
  if (!l_.is_whole(a.a) || !l_.is_whole(a.b) || !l_.is_whole(a.c) || !is_fragment(a.c.buffer) ||
      !is_shared_tile(a.b.buffer))
    throw No{"a product of parts of tiles"};
  if (a.a.buffer->type.rank() != 2 || a.b.buffer->type.rank() != 2 || a.c.buffer->type.rank() != 2)
    throw No{"a product of tiles that are not matrices"};
  const bool from_registers = is_fragment(a.a.buffer);
  if (!from_registers && !is_shared_tile(a.a.buffer)) throw No{"a product of a global operand"};
  if (from_registers && (a.transpose_a || bytes(a.a.buffer->type.dtype) != 2))
    throw No{"a transposed or 8-bit operand in registers"};
  const int64_t m = extent_of(a.c.buffer, 0), n = extent_of(a.c.buffer, 1),
                k = extent_of(a.a.buffer, a.transpose_a ? 0 : 1);
  if (m % 64 || n % 8 || n > 256 || k % row.k)
    throw No{fmt::format("wgmma needs m a multiple of 64, n a multiple of 8 up to 256, k of {}; the tile is {}x{}x{}",
                         row.k, m, n, k)};
  if (!row.transposable && (a.transpose_a || !a.transpose_b)) throw No{"8-bit operands must run along k"};
  if (rows_ != 0 && rows_ != m) throw No{"products of different heights"};
  rows_ = m;
  gemms_.push_back(&op);
}

void HopperForm::check_copy(const ir::Op& op) {
  const auto& a = op.as<ir::CopyAttributes>();
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  if (!is_global(src) || src->type.dtype != dst->type.dtype || !l_.is_whole(a.dst))
    throw No{"a copy the copy engine cannot make"};
  if (!op.operands.empty() && !(op.operands[0]->def && op.operands[0]->def->kind == OpKind::Constant &&
                                op.operands[0]->def->as<ir::ConstantAttributes>().real == 0 &&
                                op.operands[0]->def->as<ir::ConstantAttributes>().integer == 0))
    throw No{"a fill value other than 0 out of bounds"};
  int kept = 0;
  for (const ir::Slice& s : a.src.slices) kept += s.keep;
  if (kept != 2 || !a.src.slices.back().keep || src->type.rank() > 5 || dst->type.rank() != 2)
    throw No{"a copy that is not a matrix with the tensor's inner dimension"};
  const int64_t inner = extent_of(dst, 1) * bytes(dst->type.dtype);
  if (inner % 32 || extent_of(dst, 0) > 256) throw No{fmt::format("a tile row of {} bytes", inner)};
  if (!copies_.emplace(dst, &op).second) throw No{fmt::format("shared tile {} is filled twice", dst->name)};
}

void HopperForm::choose_roles() {
  groups_ = rows_ % 192 == 0 ? 3 : rows_ % 128 == 0 ? 2 : 1;
  if (rows_ / groups_ > 128) throw No{fmt::format("{} rows", rows_)};
  int64_t registers = 0;
  for (const ir::Op* op : l_.ops_)
    if (op->kind == OpKind::Alloc && is_fragment(op->result())) {
      int64_t count = 1;
      for (size_t d = 0; d < op->result()->type.shape.size(); ++d) count *= extent_of(op->result(), d);
      if (op->result()->type.rank() == 2)
        registers += count / (groups_ * 128) / (bytes(op->result()->type.dtype) == 2 ? 2 : 1);
    }
  if (registers > (groups_ == 3 ? 136 : 208)) throw No{fmt::format("{} accumulator registers a thread", registers)};
}

void HopperForm::layouts() {
  l_.threads_ = groups_ * 128;
  l_.assign_layouts([&](const ir::Op& op, const ir::Value* v) -> std::optional<Distribution> {
    if (op.kind != OpKind::Gemm) return std::nullopt;
    const auto& a = op.as<ir::GemmAttributes>();
    if (v != a.c.buffer && v != a.a.buffer) return std::nullopt;
    return wgmma_accumulator(extent_of(v, 0), extent_of(v, 1), groups_);
  });
  for (const ir::Op* op : l_.ops_)
    if (op->kind == OpKind::Alloc && is_fragment(op->result()) && !l_.in_registers(op->result()))
      throw No{fmt::format("fragment {} does not fit registers", op->result()->name)};
  for (const ir::Op* op : gemms_) {
    const auto& a = op->as<ir::GemmAttributes>();
    for (const ir::Value* v : {a.c.buffer, a.a.buffer})
      if (is_fragment(v) && !(*l_.distribution_of(v) == wgmma_accumulator(extent_of(v, 0), extent_of(v, 1), groups_)))
        throw No{"conflicting layouts of products"};
  }
}

void HopperForm::find_unrounded() {
  for (const ir::Op* op : l_.ops_) {
    if (op->kind != OpKind::Alloc || !is_fragment(op->result()) || !is_storage_float(op->result()->type.dtype))
      continue;
    bool others = false;
    for (const ir::Op* user : l_.ops_)
      if (user->regions.empty() && touched(*user).reads.contains(op->result())) others = true;
    if (!others) l_.unrounded_.insert(op->result());
  }
}

}  // namespace tilewright::plan::gpu
