// Exact products of i8 by the CPU's dot product instruction (target/cpu_dot.h).
//
//   A   copied row by row, as the instruction's element type, so that `terms` neighbours in k are one 32-bit broadcast
//   B   packed so that `terms` rows of one column are neighbours; where the instruction wants it unsigned, as B + 128
//   C   starts at -128 · (sum of A's row) in that case
//
// A is zero beyond its depth, so what the last row of a panel holds there does not matter.
#include "plan/cpu/gemm_lowering.h"

namespace tilewright::plan::cpu {

using ir::BinaryOp;
using ir::Index;
using ir::OpKind;
using ir::Type;
using ir::Value;

const target::CpuDot* GemmLowering::find_dot(bool depth_is_inside) const {
  const bool of_i8 = a_.place->storage == DType::I8 && b_operand_.place->storage == DType::I8;
  if (compute_ != DType::I32 || !of_i8 || !depth_is_inside || !copies_whole_rows_) return nullptr;
  return target::choose_dot(l_.cpu_);
}

/// Adds 128 · each element to the sums of its group.
Value* GemmLowering::add_row_sum(Value* sums, Value* elements) {
  Value* bias = b_.integer(dot_->b, 128, elements->type.lanes);
  return b_.op(OpKind::Fma, {elements, bias, sums}, {}, {sums->type})->result();
}

void GemmLowering::store_correction(Index row, Value* sums) {
  Value* total =
      b_.op(OpKind::VectorReduce, {sums}, ir::ReduceLanesAttributes{ir::ReduceKind::Sum}, {Type::scalar(compute_)})
          ->result();
  b_.vstore(b_.scratch(l_.number(corrections_)),
            {.storage = compute_, .bytes = row * bytes(compute_), .align = bytes(compute_)},
            b_.unary(ir::UnaryOp::Neg, total));
}

Value* GemmLowering::correction(Index row) {
  Value* x =
      b_.vload(b_.scratch(l_.number(corrections_)),
               {.storage = compute_, .bytes = row * bytes(compute_), .align = bytes(compute_)}, Type::scalar(compute_));
  return b_.broadcast(x, tile_.lanes);
}

/// Groups of `terms` rows of B, interleaved: 32 bits per column.
void Lowering::emit_dot_panel(const Operand& o, const PanelShape& shape, Value* to, Index column, Index k0,
                              Index depth) {
  const RegisterTile& tile = shape.tile;
  const int terms = shape.terms(), width = 32 / terms;
  const bool is_biased = shape.dot->b == DType::U8;
  const Index inside = min(depth, o.depth_valid - k0);
  const int64_t lost = options_.plant.is("gemm_dot", 1) ? 1 : 0;  // planted: the last row is the one before it
  const Index last = max(inside - 1 - lost, number(0));
  Value* from = b_.offset(o.place->pointer, o.base + column * o.width_stride + k0 * o.depth_stride);
  const bool contiguous = o.width_stride.is_constant(1);
  Value* offsets = nullptr;
  if (!contiguous) {
    Value* ramp = b_.op(OpKind::Iota, {}, {}, {Type::scalar(DType::I64, tile.lanes)})->result();
    offsets = b_.binary(BinaryOp::Mul, ramp, widen(b_.index_value(o.width_stride), tile.lanes));
  }
  std::vector<Value*> masks;
  for (int v = 0; v < tile.vectors; ++v)
    masks.push_back(b_.mask(o.width_valid - column - int64_t{v} * tile.lanes, tile.lanes));
  const auto constant = [&](int64_t x) { return b_.integer(DType::U32, x, tile.lanes); };
  b_.for_loop(number(0), ceildiv(inside, terms), number(1), [&](const std::vector<Value*>& i) {
    const Index group = vector_.indices().symbol(i[0]);
    for (int v = 0; v < tile.vectors; ++v) {
      Value* word = nullptr;
      for (int t = 0; t < terms; ++t) {
        Value* row = b_.offset(from, min(group * terms + t, last) * o.depth_stride);
        std::vector<Value*> operands{row};
        if (offsets) operands.push_back(offsets);
        operands.push_back(masks[static_cast<size_t>(v)]);
        Value* x = b_.op(offsets ? OpKind::Gather : OpKind::VectorLoad, std::move(operands),
                         ir::MemoryAttributes{
                             .storage = DType::I8, .bytes = o.width_stride * (int64_t{v} * tile.lanes), .align = 1},
                         {Type::scalar(DType::I8, tile.lanes)})
                       ->result();
        x = b_.cast(b_.cast(x, DType::I32), DType::U32);
        if (t + 1 < terms) x = b_.binary(BinaryOp::And, x, constant((int64_t{1} << width) - 1));
        if (t > 0) x = b_.binary(BinaryOp::Shl, x, constant(int64_t{width} * t));
        word = word ? b_.binary(BinaryOp::Or, word, x) : x;
      }
      if (is_biased) word = b_.binary(BinaryOp::Xor, word, constant(0x80808080));
      b_.vstore(to,
                {.storage = DType::U32, .bytes = group * shape.row_bytes() + int64_t{v} * tile.lanes * 4, .align = 4},
                word);
    }
    b_.yield({});
  });
}

}  // namespace tilewright::plan::cpu
