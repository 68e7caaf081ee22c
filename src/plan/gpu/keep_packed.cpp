// Rows of 16-bit floats stay as they were read: two elements a register, unpacked by each reader, so that a long row
// fits the registers of its block and more blocks are resident.
#include <algorithm>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::OpKind;

namespace {

bool is_own_access(const ir::Op& parallel, const ir::Op& op) {
  const auto& variables = parallel.regions[0]->arguments;
  const auto& indices = op.as<ir::AccessAttributes>().indices;
  if (indices.size() != variables.size()) return false;
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d].symbol() != variables[d]) return false;
  return true;
}

}  // namespace

/// What `copy` brings into `tile` is only read by element-wise operations and reductions until one of them replaces all
/// of it, in the straight line of the block.
bool Lowering::stays_packed(const ir::Op& copy, const ir::Value* tile) const {
  const auto home = homes_.find(&copy);
  if (home == homes_.end() || home->second != &block_region() || tile->type.dtype != DType::F32) return false;
  const auto& ops = block_region().ops;
  for (auto it = std::find(ops.begin(), ops.end(), &copy) + 1; it < ops.end(); ++it) {
    const ir::Op& op = **it;
    if (!touches(op, tile)) continue;
    if (op.kind == OpKind::Reduce && op.as<ir::ReduceAttributes>().dst.buffer != tile) continue;
    if (op.kind != OpKind::Parallel) return false;
    bool replaces = false;
    for (const ir::Op* inner : op.regions[0]->ops) {
      if (!touches(*inner, tile)) continue;
      if (!inner->regions.empty() || (inner->kind != OpKind::Load && inner->kind != OpKind::Store)) return false;
      const bool is_row = inner->as<ir::AccessAttributes>().indices.size() == 1 && tile->type.rank() == 1;
      if (!is_own_access(op, *inner) && !(is_row && inner->kind == OpKind::Load)) return false;
      replaces |= inner->kind == OpKind::Store;
    }
    if (replaces) return true;
  }
  return true;
}

/// Register `r` of a fragment as a value.
Operand Lowering::element(const ir::Value* v, size_t r) {
  const auto packed = packed_.find(v);
  if (packed == packed_.end()) return fragments_.at(v).registers[r];
  const auto [low, high] = b_.split(Scalar::B32, packed->second.words[r / 2]);
  return from_memory(packed->second.dtype, r % 2 == 0 ? low : high);
}

}  // namespace tilewright::plan::gpu
