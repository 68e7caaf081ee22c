// Blocks that walk over the rows of a grid: as many as are resident at once, each taking row after row. What is the
// same for every row (weights) is read once and kept packed in registers; the next row is on its way while one is
// worked on, so that its latency and the waits of a reduction hide behind one another.
//
// Guarantees: the results of a block a row. Only grids of row operations in registers, with rows that arrive packed.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::OpKind;
using ir::thread::Op;
using ir::thread::SpecialRegister;

/// The copy brings 16-bit floats in vectors into registers that keep them as they are, and is the tile's first use.
bool Lowering::comes_packed(const ir::Op& copy) const {
  const auto& a = copy.as<ir::CopyAttributes>();
  const DType dtype = a.src.buffer->type.dtype;
  if ((dtype != DType::BF16 && dtype != DType::F16) || !copy.operands.empty() || vector_length(copy) < 2) return false;
  if (!fragments_.contains(a.dst.buffer) || !a.src.buffer->type.shape.back().constant()) return false;
  if (written_globals_.contains(a.src.buffer) || !stays_packed(copy, a.dst.buffer)) return false;
  for (const ir::Op* before : block_region().ops) {
    if (before == &copy) return true;
    if (before->kind != OpKind::Alloc && touches(*before, a.dst.buffer)) return false;
  }
  return false;
}

std::optional<Lowering::RowWalk> Lowering::row_walk() const {
  const auto& g = grid_.as<ir::GridAttributes>();
  if (options_.row_walkers == 0 || cluster_ > 1 || options_.wide_indices || g.extents.size() != 1 ||
      !recipe_.messages.empty())
    return std::nullopt;
  const auto stays_in_registers = [&](const ir::Op* op) {
    return is_row_operation(*op) && (op->kind != OpKind::Alloc || fragments_.contains(op->result()));
  };
  const auto is_read_and_written = [&](const ir::Value* v) {
    return v->type.space == ir::MemorySpace::Global && written_globals_.contains(v);
  };
  if (!std::ranges::all_of(ops_, stays_in_registers) || std::ranges::any_of(read_globals_, is_read_and_written))
    return std::nullopt;
  RowWalk out;
  for (const ir::Op* op : block_region().ops) {
    if (op->kind != OpKind::Copy || !comes_packed(*op)) continue;
    bool moves = false, is_known = true;
    for (const ir::Slice& s : op->as<ir::CopyAttributes>().src.slices) {
      moves |= !s.start.constant().has_value();
      ir::for_each_symbol(s.start, [&](const ir::Value* v) { is_known &= v == block_region().arguments[0]; });
    }
    if (is_known) (moves ? out.ahead : out.kept).push_back(op);
  }
  if (out.ahead.empty()) return std::nullopt;
  out.walkers = options_.row_walkers > 0 ? options_.row_walkers : chosen_walkers(out);
  if (out.walkers == 0) return std::nullopt;
  return out;
}

/// As many blocks as are resident at once; 0: a block a row is as fast. It is not where what is the same for every row
/// is more than the row itself and rows are long (LayerNorm of 16384 columns); everything has to stay in registers.
int Lowering::chosen_walkers(const RowWalk& walk) const {
  constexpr size_t kLongRow = 24, kMostKept = 144;  // elements of a thread, two in a register
  const auto elements_of = [&](const std::vector<const ir::Op*>& copies) {
    size_t n = 0;
    for (const ir::Op* op : copies) n += fragments_.at(op->as<ir::CopyAttributes>().dst.buffer).registers.size();
    return n;
  };
  const size_t row = elements_of(walk.ahead), kept = elements_of(walk.kept);
  if (row < kLongRow || kept < 2 * row || 2 * row + kept > kMostKept || threads_ < 512) return 0;
  return gpu_.multiprocessors;
}

void Lowering::walk_rows(const RowWalk& walk) {
  fact("rows",
       fmt::format(
           "{} blocks walk over them, the next row on its way meanwhile; {} tiles are the same for all and read once",
           walk.walkers, walk.kept.size()),
       grid_.location);
  const ir::Value* row = block_region().arguments[0];
  const auto stand_at = [&](Operand number) {
    index_.bind(row, {number, 0});
    define(row, b_.convert(Scalar::S64, Scalar::S32, number));
  };
  const auto words_of = [&](const ir::Op* op) -> std::vector<Reg>& {
    return packed_.at(op->as<ir::CopyAttributes>().dst.buffer).words;
  };
  const auto fetch = [&](Operand number) {
    index_.push();
    stand_at(number);
    for (const ir::Op* op : walk.ahead) copy(*op);
    index_.pop();
  };
  const Operand first = b_.special(SpecialRegister::BlockX);
  const Operand step = b_.special(SpecialRegister::GridX);
  const Operand rows = index_.value(grid_.as<ir::GridAttributes>().extents[0]);
  for (const ir::Op* op : walk.kept) copy(*op);
  fetch(first);
  const auto is_in = [](const std::vector<const ir::Op*>& list, const ir::Op* op) {
    return std::ranges::find(list, op) != list.end();
  };
  b_.for_range(first, rows, step, [&](Reg number) {
    index_.push();
    std::vector<std::vector<Reg>> here, next;
    for (const ir::Op* op : walk.ahead) here.push_back(words_of(op));
    // plant 1: the row on its way is the one that is worked on
    fetch(options_.plant.is("gpu_rows", 1) ? Operand(number) : b_.add(Scalar::S32, number, step));
    for (size_t i = 0; i < walk.ahead.size(); ++i) next.push_back(std::exchange(words_of(walk.ahead[i]), here[i]));
    stand_at(number);
    for (const ir::Op* op : block_region().ops)
      if (!is_in(walk.ahead, op) && !is_in(walk.kept, op)) this->op(*op);
    for (size_t i = 0; i < here.size(); ++i)
      for (size_t k = 0; k < here[i].size(); ++k) b_.assign(here[i][k], next[i][k]);
    index_.pop();
  });
}

}  // namespace tilewright::plan::gpu
