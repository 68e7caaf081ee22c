#include "runtime/recipe.h"

#include <bit>

#include "runtime/element.h"

namespace tilewright::runtime {
namespace {

std::unexpected<Failure> bad(std::string message) {
  return fail(FailureCode::bad_artefact, "launch recipe: " + std::move(message));
}

Status check_expression(const Expression& expression, size_t slots, const std::string& part) {
  if (Status status = check(expression, slots); !status) return bad(part + ": " + status.error().message);
  return {};
}

Status check_counts(const Recipe& recipe) {
  if (recipe.tensors.size() > kMaxTensors) return bad("more than " + std::to_string(kMaxTensors) + " tensors");
  if (recipe.scalars.size() > kMaxScalars) return bad("more than " + std::to_string(kMaxScalars) + " scalars");
  if (recipe.slots.size() > kMaxSlots) return bad("more than " + std::to_string(kMaxSlots) + " slots");
  if (recipe.workspaces.size() > kMaxWorkspaces)
    return bad("more than " + std::to_string(kMaxWorkspaces) + " workspaces");
  if (recipe.launches.size() > kMaxLaunches) return bad("more than " + std::to_string(kMaxLaunches) + " launches");
  return {};
}

Status check_axis(const Recipe& recipe, size_t tensor, size_t index) {
  const Axis& axis = recipe.tensors[tensor].axes[index];
  const std::string part = "axis " + std::to_string(index) + " of " + recipe.tensors[tensor].name;
  if (axis.binds < 0) {
    if (!axis.extent.is_given()) return bad(part + " neither binds a slot nor states its extent");
    return check_expression(axis.extent, recipe.slots.size(), part);
  }
  if (recipe.tensors[tensor].is_absent) return bad(part + ": an optional tensor cannot bind a dimension");
  if (static_cast<size_t>(axis.binds) >= recipe.slots.size()) return bad(part + " binds a slot that does not exist");
  const Slot& slot = recipe.slots[static_cast<size_t>(axis.binds)];
  if (slot.kind != SlotKind::Dim || slot.argument != tensor || slot.axis != index) {
    return bad(part + " binds a slot that names another axis");
  }
  return {};
}

Status check_tensor(const Recipe& recipe, size_t index) {
  const TensorArgument& tensor = recipe.tensors[index];
  if (!is_dtype(tensor.dtype)) return bad(tensor.name + " has an unknown dtype");
  if (tensor.access > Access::InOut) return bad(tensor.name + " has an unknown access");
  if (tensor.axes.size() > TW_MAX_RANK)
    return bad(tensor.name + " has more than " + std::to_string(TW_MAX_RANK) + " axes");
  if (!std::has_single_bit(tensor.facts.alignment) || !std::has_single_bit(tensor.facts.pitch_alignment)) {
    return bad(tensor.name + ": an alignment must be a power of two");
  }
  for (const uint32_t other : tensor.may_alias) {
    if (other >= recipe.tensors.size()) return bad(tensor.name + " may alias a tensor that does not exist");
  }
  for (size_t axis = 0; axis < tensor.axes.size(); ++axis) {
    if (Status status = check_axis(recipe, index, axis); !status) return status;
  }
  return {};
}

Status check_slot(const Recipe& recipe, size_t index) {
  const Slot& slot = recipe.slots[index];
  const std::string part = "slot " + std::to_string(index);
  switch (slot.kind) {
    case SlotKind::Computed: return check_expression(slot.value, index, part);
    case SlotKind::Scalar:
      if (slot.argument >= recipe.scalars.size()) return bad(part + " reads a scalar that does not exist");
      return {};
    case SlotKind::Present:
    case SlotKind::Misalignment:
      if (slot.argument >= recipe.tensors.size()) return bad(part + " reads a tensor that does not exist");
      return {};
    case SlotKind::Dim:
    case SlotKind::Stride:
      if (slot.argument >= recipe.tensors.size() || slot.axis >= recipe.tensors[slot.argument].axes.size()) {
        return bad(part + " reads an axis that does not exist");
      }
      if (slot.kind == SlotKind::Dim &&
          recipe.tensors[slot.argument].axes[slot.axis].binds != static_cast<int64_t>(index)) {
        return bad(part + " is a dimension that no axis binds");
      }
      return {};
  }
  return bad(part + " is of an unknown kind");
}

Status check_tensor_map(const Recipe& recipe, const TensorMap& map, const std::string& part) {
  const size_t rank = map.extents.size();
  if (map.pointer >= recipe.tensors.size() + recipe.workspaces.size())
    return bad(part + " maps a pointer that does not exist");
  if (rank < 1 || rank > 5 || map.stride_bytes.size() != rank - 1 || map.box.size() != rank ||
      map.element_strides.size() != rank) {
    return bad(part + " has a tensor map of inconsistent rank");
  }
  for (const auto* expressions : {&map.extents, &map.stride_bytes}) {
    for (const Expression& expression : *expressions) {
      if (Status status = check_expression(expression, recipe.slots.size(), part); !status) return status;
    }
  }
  return {};
}

Status check_launch(const Recipe& recipe, const Launch& launch) {
  const std::string part = "launch of " + launch.symbol;
  if (launch.target > LaunchTarget::Cuda) return bad(part + " is for an unknown target");
  if (launch.grid.empty() || launch.grid.size() > 3) return bad(part + " must have 1 to 3 grid axes");
  for (const Expression& extent : launch.grid) {
    if (!extent.is_given()) return bad(part + " lacks a grid extent");
    if (Status status = check_expression(extent, recipe.slots.size(), part); !status) return status;
  }
  for (const Expression* expression :
       {&launch.scratch_bytes, &launch.blocks_per_task, &launch.cost_ns, &launch.threads, &launch.shared_bytes}) {
    if (Status status = check_expression(*expression, recipe.slots.size(), part); !status) return status;
  }
  for (const TensorMap& map : launch.tensor_maps) {
    if (Status status = check_tensor_map(recipe, map, part); !status) return status;
  }
  return {};
}

}  // namespace

Status check(const Recipe& recipe) {
  if (Status status = check_counts(recipe); !status) return status;
  for (size_t i = 0; i < recipe.tensors.size(); ++i) {
    if (Status status = check_tensor(recipe, i); !status) return status;
  }
  for (const ScalarArgument& scalar : recipe.scalars) {
    if (!is_dtype(scalar.dtype) || scalar.dtype == TW_E4M3 || scalar.dtype == TW_E5M2) {
      return bad("scalar " + scalar.name + " has a dtype that no scalar can have");
    }
  }
  for (size_t i = 0; i < recipe.slots.size(); ++i) {
    if (Status status = check_slot(recipe, i); !status) return status;
  }
  for (const Requirement& requirement : recipe.requirements) {
    if (!requirement.holds.is_given()) return bad("requirement '" + requirement.text + "' has no expression");
    if (Status status = check_expression(requirement.holds, recipe.slots.size(), requirement.text); !status)
      return status;
  }
  for (const Workspace& workspace : recipe.workspaces) {
    for (const Expression* expression : {&workspace.bytes, &workspace.zeroed_bytes}) {
      if (Status status = check_expression(*expression, recipe.slots.size(), workspace.name); !status) return status;
    }
  }
  for (const Launch& launch : recipe.launches) {
    if (Status status = check_launch(recipe, launch); !status) return status;
  }
  return {};
}

}  // namespace tilewright::runtime
