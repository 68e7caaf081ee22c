// Room for tiles: bytes of shared memory, registers of fragments and of private variables.
#include <fmt/format.h>

#include "plan/gpu/lowering.h"
#include "plan/gpu/op_views.h"

namespace tilewright::plan::gpu {

using ir::OpKind;

int Lowering::reserve_shared(int64_t bytes, int alignment, const Location& location) {
  shared_bytes_ = (shared_bytes_ + alignment - 1) / alignment * alignment;
  const int at = shared_bytes_;
  if (bytes > gpu_.shared_bytes_per_block || at + bytes > gpu_.shared_bytes_per_block) {
    throw Unsupported{fail_at(DiagnosticCode::E2102, location,
                              fmt::format("the block needs {} bytes of shared memory; {} allows {}", at + bytes,
                                          gpu_.name, gpu_.shared_bytes_per_block),
                              "use smaller tiles or fewer stages")
                          .error()};
  }
  shared_bytes_ += static_cast<int>(bytes);
  return at;
}

bool Lowering::feeds_matrix(const ir::Value* tile) const {
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Gemm) continue;
    const auto& a = op->as<ir::GemmAttributes>();
    if ((a.a.buffer == tile || a.b.buffer == tile) && uses_mma(a)) return true;
  }
  return false;
}

void Lowering::allocate_shared() {
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Alloc) continue;
    const ir::Value* v = op->result();
    if (shared_.contains(v)) continue;
    const bool is_shared = v->type.space == ir::MemorySpace::Shared || (is_fragment(v) && !in_registers(v));
    if (!is_shared) continue;
    SharedTile tile;
    const auto shape = constant_shape(v->type);
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
    tile.pitch = shape.empty() ? 1 : shape.back();
    // Rows an odd number of 16-byte pieces apart put eight neighbouring ones in different banks; 16-byte rows stay
    // aligned. Tiles that no matrix instruction reads are lengthened only where every row begins in the same bank.
    const int64_t row_bytes = tile.pitch * bytes(v->type.dtype);
    const ir::LayoutHint asked = op->hints.layout;
    if (asked == ir::LayoutHint::Swizzled) {
      throw Unsupported{
          fail_at(DiagnosticCode::E2004, op->location,
                  fmt::format("the hint {} cannot be followed: only tiles that the copy engine fills for "
                              "wgmma are swizzled, and this grid has the portable form",
                              to_text(op->hints)),
                  "layout(\"padded\") is free of bank conflicts, too; without the hint the compiler chooses")
              .error()};
    }
    const bool conflicts = rows > 1 && row_bytes % (feeds_matrix(v) ? 32 : 128) == 0;
    if (asked == ir::LayoutHint::Padded || (asked == ir::LayoutHint::Inferred && conflicts))
      tile.pitch += 16 / bytes(v->type.dtype);
    tile.stage_bytes = static_cast<int>((rows * tile.pitch * bytes(v->type.dtype) + 127) / 128 * 128);
    const int64_t stages = async_stages_.contains(v) ? async_stages_.at(v) : 1;
    tile.offset = reserve_shared(stages * tile.stage_bytes, 128, op->location);
    shared_[v] = tile;
  }
}

/// What allocate_shared() and assign_layouts() settled, for people.
void Lowering::describe_layouts() {
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Alloc) continue;
    const ir::Value* v = op->result();
    BufferLayout b{.name = v->name, .dtype = v->type.dtype, .shape = constant_shape(v->type)};
    if (const Distribution* d = distribution_of(v)) {
      b.registers = *d;
    } else if (const auto at = shared_.find(v); at != shared_.end()) {
      b.shared.pitch = at->second.pitch;
      b.shared.stages = async_stages_.contains(v) ? async_stages_.at(v) : 1;
    } else {
      continue;
    }
    drawn_.push_back(std::move(b));
  }
}

void Lowering::allocate_fragments() {
  for (const ir::Op* op : ops_) {
    if (op->kind != OpKind::Alloc) continue;
    const ir::Value* v = op->result();
    if (const Distribution* d = distribution_of(v)) {
      const Scalar type = v->type.dtype == DType::Bool ? Scalar::B32 : register_type(v->type.dtype);
      Fragment f{*d, b_.regs(static_cast<int>(d->registers.size()), type)};
      // An uninitialised tile is read only by wrong programs; zero keeps every path of the program defined.
      for (Reg r : f.registers) b_.assign(r, 0);
      fragments_[v] = std::move(f);
    } else if (v->type.is_buffer() &&
               (v->type.space == ir::MemorySpace::Var || v->type.space == ir::MemorySpace::Local)) {
      int64_t count = 1;
      for (int64_t n : constant_shape(v->type)) count *= n;
      const Scalar type = v->type.dtype == DType::Bool ? Scalar::B32 : register_type(v->type.dtype);
      auto& regs = variables_[v] = b_.regs(static_cast<int>(count), type);
      for (Reg r : regs) b_.assign(r, 0);
    }
  }
}

}  // namespace tilewright::plan::gpu
