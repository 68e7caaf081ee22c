#include "transform/forward_copies.h"

#include <algorithm>

#include "transform/uses.h"

namespace tilewright::transform {
namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;
using ir::View;

bool is_whole(const View& v) {
  return v.slices.size() == v.buffer->type.shape.size() && v.extents() == v.buffer->type.shape;
}

class Forwarding {
 public:
  Forwarding(ir::Kernel& kernel, PassContext& context)
      : kernel_(kernel), context_(context), uses_(buffer_uses(*kernel.body)) {}

  bool run() {
    bool changed = false;
    std::vector<const Value*> tiles;
    for_each_op(*kernel_.body, [&](Op& op) {
      if (op.kind == OpKind::Alloc && op.result()->type.space == ir::MemorySpace::Shared) tiles.push_back(op.result());
    });
    for (const Value* tile : tiles) changed |= forward(tile);
    if (changed) remove_dead(kernel_);
    return changed;
  }

 private:
  /// All uses must be copies into the whole tile and gemms that read it right after one of them.
  bool forward(const Value* tile) {
    std::vector<std::pair<Op*, const Op*>> readers;  // gemm, the copy it reads
    std::vector<const Op*> copies;
    for (Op* op : uses_[tile]) {
      if (op->kind == OpKind::Copy) {
        if (!is_plain_copy(*op, tile)) return false;
        copies.push_back(op);
      } else if (op->kind == OpKind::Gemm) {
        const auto& g = op->as<ir::GemmAttributes>();
        if (g.c.buffer == tile || (g.a.buffer == tile && !is_whole(g.a)) || (g.b.buffer == tile && !is_whole(g.b)))
          return false;
        const Op* copy = copy_before(*op, tile);
        if (!copy) return false;
        readers.emplace_back(op, copy);
      } else {
        return false;
      }
    }
    if (readers.empty()) return false;
    for (auto& [gemm, copy] : readers) {
      auto& g = gemm->as<ir::GemmAttributes>();
      const View& source = copy->as<ir::CopyAttributes>().src;
      if (g.a.buffer == tile) g.a = source;
      if (g.b.buffer == tile) g.b = source;
      if (context_.options.plant.is("forward_copies", 1)) g.b.slices[0].start = kernel_.indices().constant(0);
      context_.notes.push_back({"forward_copies",
                                "gemm reads " + source.buffer->name + " instead of the tile " + tile->name,
                                gemm->location});
    }
    for_each_region(*kernel_.body, [&](ir::Region& r) {
      std::erase_if(r.ops, [&](const Op* op) { return std::ranges::find(copies, op) != copies.end(); });
    });
    return true;
  }

  bool is_plain_copy(const Op& op, const Value* tile) const {
    const auto& a = op.as<ir::CopyAttributes>();
    if (a.dst.buffer != tile || a.src.buffer == tile || !is_whole(a.dst) || !op.operands.empty()) return false;
    if (a.src.buffer->type.dtype != tile->type.dtype || a.src.extents() != tile->type.shape) return false;
    const int position = kernel_.tensor_position(a.src.buffer);
    if (position < 0 || kernel_.tensors[static_cast<size_t>(position)].direction != ir::Direction::In) return false;
    return std::ranges::none_of(kernel_.aliases,
                                [&](const auto& pair) { return pair.first == position || pair.second == position; });
  }

  /// The copy that wrote the tile last before `gemm`, in the gemm's own region; none when an operation with regions
  /// between them may write it too.
  const Op* copy_before(const Op& gemm, const Value* tile) const {
    const Op* found = nullptr;
    for_each_region(*kernel_.body, [&](ir::Region& r) {
      const auto at = std::ranges::find(r.ops, &gemm);
      if (at == r.ops.end()) return;
      for (auto op = r.ops.begin(); op != at; ++op) {
        if (is_copy_into(**op, tile)) found = *op;
        for (const ir::Region* inner : (*op)->regions) {
          for_each_op(*inner, [&](const Op& nested) {
            if (is_copy_into(nested, tile)) found = nullptr;
          });
        }
      }
    });
    return found;
  }

  static bool is_copy_into(const Op& op, const Value* tile) {
    return op.kind == OpKind::Copy && op.as<ir::CopyAttributes>().dst.buffer == tile;
  }

  static void for_each_region(ir::Region& region, const std::function<void(ir::Region&)>& visit) {
    visit(region);
    for (Op* op : region.ops) {
      for (ir::Region* inner : op->regions) for_each_region(*inner, visit);
    }
  }

  ir::Kernel& kernel_;
  PassContext& context_;
  std::unordered_map<const Value*, std::vector<Op*>> uses_;
};

}  // namespace

bool forward_copies(ir::Kernel& kernel, PassContext& context) { return Forwarding(kernel, context).run(); }

}  // namespace tilewright::transform
