// The kernel's arguments as a launch recipe and as slots of the low-level kernel.
//
// Slots, in order: bound dimensions, strides of every axis but the last, scalars, presence of optional tensors.
// Pointers are the tensors in order, then the workspaces.
#pragma once

#include <unordered_map>

#include "ir/ir.h"
#include "runtime/recipe.h"

namespace tilewright::plan::cpu {

class Arguments {
 public:
  /// Fills `recipe`'s arguments and `vector`'s slots from `tile`.
  Arguments(const ir::Kernel& tile, ir::Kernel& vector, runtime::Recipe& recipe);

  /// A tile-level expression over dimensions and integer scalars, over slots.
  ir::Index map(ir::Index x) const;
  /// The slot (or constant) that stands for a dimension or a scalar; empty for any other value.
  ir::Index index_of(const ir::Value* tile_value) const;
  int pointer_of(int tensor) const { return pointers_[static_cast<size_t>(tensor)]; }
  /// Strides in elements, over slots; a workspace is contiguous.
  const std::vector<ir::Index>& strides(int tensor) const { return strides_[static_cast<size_t>(tensor)]; }

  /// The address of a tensor argument modulo 64.
  ir::Index misalignment(int tensor);

  /// Adds a workspace of the planner's own; the number is that of its pointer.
  int add_workspace(std::string name, ir::Index bytes);
  runtime::Expression expression(ir::Index x) const;

 private:
  ir::Index add_slot(runtime::Slot slot);
  void add_dimensions();
  void add_tensors();
  void add_scalars();
  void add_requirements();

  const ir::Kernel& tile_;
  ir::Kernel& vector_;
  runtime::Recipe& recipe_;
  std::unordered_map<const ir::Value*, ir::Index> index_of_;
  std::unordered_map<const ir::Value*, int> slot_number_;
  std::vector<int> pointers_;
  std::vector<std::vector<ir::Index>> strides_;
  std::unordered_map<int, ir::Index> misalignments_;
  uint32_t tensor_count_ = 0;
};

}  // namespace tilewright::plan::cpu
