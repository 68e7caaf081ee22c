#include "runtime/argument_errors.h"

#include "runtime/element.h"

namespace tilewright::runtime::argument_errors {
namespace {

std::string dtype_text(int32_t dtype) {
  return is_dtype(dtype) ? std::string(name(static_cast<tw_dtype>(dtype))) : "dtype " + std::to_string(dtype);
}

std::string axis_text(const TensorArgument& tensor, size_t axis) {
  std::string text = tensor.name + ": axis " + std::to_string(axis);
  if (!tensor.axes[axis].text.empty()) text += " (" + tensor.axes[axis].text + ")";
  return text;
}

Failure invalid(FailureCode code, std::string message) { return {code, std::move(message), false}; }
Failure other_class(FailureCode code, std::string message) { return {code, std::move(message), true}; }

}  // namespace

Failure tensor_count(const Recipe& recipe, size_t got) {
  std::string names;
  for (const TensorArgument& tensor : recipe.tensors) names += (names.empty() ? "" : ", ") + tensor.name;
  return invalid(FailureCode::argument_count, recipe.kernel + " takes " + std::to_string(recipe.tensors.size()) +
                                                  " tensors (" + names + "), got " + std::to_string(got));
}

Failure scalar_count(const Recipe& recipe, size_t got) {
  return invalid(FailureCode::argument_count, recipe.kernel + " takes " + std::to_string(recipe.scalars.size()) +
                                                  " scalars, got " + std::to_string(got));
}

Failure null_array(const Recipe& recipe) {
  return invalid(FailureCode::null_argument, recipe.kernel + ": the array of arguments is null");
}

Failure missing(const TensorArgument& tensor) {
  return invalid(FailureCode::null_argument, tensor.name + ": is missing");
}

Failure compiled_without(const TensorArgument& tensor) {
  return other_class(FailureCode::wrong_class, tensor.name + ": was given, but this plan was compiled without it");
}

Failure unknown_dimension(const TensorArgument& tensor, size_t axis) {
  return invalid(FailureCode::null_argument, axis_text(tensor, axis) +
                                                 " is not known from the inputs: give the extents of " + tensor.name +
                                                 " (from Python: pass the array with out=)");
}

Failure identity(const TensorArgument& tensor, const tw_tensor& got, tw_device_kind device) {
  if (got.dtype != tensor.dtype) {
    return invalid(FailureCode::wrong_dtype,
                   tensor.name + ": expected " + dtype_text(tensor.dtype) + ", got " + dtype_text(got.dtype));
  }
  if (got.rank != static_cast<int32_t>(tensor.axes.size())) return rank(tensor, got);
  if (got.device != device) {
    return invalid(FailureCode::wrong_device, tensor.name + ": is not in the memory of the plan's device");
  }
  return invalid(FailureCode::read_only_argument, tensor.name + ": the kernel writes it, but the tensor is read-only");
}

Failure rank(const TensorArgument& tensor, const tw_tensor& got) {
  return invalid(FailureCode::wrong_rank, tensor.name + ": expected " + std::to_string(tensor.axes.size()) +
                                              " axes, got " + std::to_string(got.rank));
}

Failure null_extents(const TensorArgument& tensor) {
  return invalid(FailureCode::null_argument, tensor.name + ": the array of extents is null");
}

Failure negative_extent(const TensorArgument& tensor, size_t axis, int64_t got) {
  return invalid(FailureCode::wrong_extent, axis_text(tensor, axis) + " has a negative extent, " + std::to_string(got));
}

Failure too_many_elements(const TensorArgument& tensor) {
  return invalid(FailureCode::too_large, tensor.name + ": its extents have more than 2^63 elements");
}

Failure far_stride(const TensorArgument& tensor, size_t axis) {
  return invalid(FailureCode::too_large, axis_text(tensor, axis) + " has a stride that leaves the address space");
}

Failure outside_address_space(const TensorArgument& tensor) {
  return invalid(FailureCode::too_large, tensor.name + ": its elements leave the address space");
}

Failure null_data(const TensorArgument& tensor) {
  return invalid(FailureCode::null_argument, tensor.name + ": its data is null");
}

Failure element_alignment(const TensorArgument& tensor) {
  return invalid(FailureCode::wrong_alignment, tensor.name + ": its address is not a multiple of the element size, " +
                                                   std::to_string(element_bytes(tensor.dtype)));
}

Failure class_alignment(const TensorArgument& tensor) {
  return other_class(FailureCode::wrong_alignment, tensor.name + ": this plan needs an address that is a multiple of " +
                                                       std::to_string(tensor.facts.alignment) + " bytes");
}

Failure class_bytes(const TensorArgument& tensor, uint64_t got) {
  return other_class(FailureCode::too_large, tensor.name + ": spans " + std::to_string(got) +
                                                 " bytes, this plan takes less than " +
                                                 std::to_string(tensor.facts.max_bytes));
}

Failure zero_stride(const TensorArgument& tensor, size_t axis) {
  return invalid(FailureCode::wrong_stride, axis_text(tensor, axis) + " has stride 0, but the kernel writes it");
}

Failure class_inner_stride(const TensorArgument& tensor, size_t axis, int64_t got) {
  return other_class(FailureCode::wrong_stride, axis_text(tensor, axis) + " has stride " + std::to_string(got) +
                                                    ", this plan needs 1 on the last axis");
}

Failure class_pitch(const TensorArgument& tensor, size_t axis, int64_t got) {
  return other_class(FailureCode::wrong_stride, axis_text(tensor, axis) + " has a stride of " + std::to_string(got) +
                                                    " elements, this plan needs a multiple of " +
                                                    std::to_string(tensor.facts.pitch_alignment) + " bytes");
}

Failure extent(const Recipe& recipe, size_t tensor, size_t axis, int64_t got, int64_t wanted) {
  std::string message = axis_text(recipe.tensors[tensor], axis) + " has extent " + std::to_string(got) + ", expected " +
                        std::to_string(wanted);
  const auto& code = recipe.tensors[tensor].axes[axis].extent.code;
  if (code.size() == 1 && code[0].op == ExpressionOp::Slot) {  // a name: say who gave it its value
    const Slot& slot = recipe.slots[static_cast<size_t>(code[0].value)];
    if (slot.kind == SlotKind::Dim) {
      message += ", the extent of axis " + std::to_string(slot.axis) + " of " + recipe.tensors[slot.argument].name;
    }
  }
  return invalid(FailureCode::wrong_extent, std::move(message));
}

Failure requirement(const Recipe& recipe, const Requirement& broken, const Binding& binding) {
  std::string values;
  for (size_t i = 0; i < recipe.slots.size(); ++i) {
    if (recipe.slots[i].kind != SlotKind::Dim) continue;
    values += (values.empty() ? " (" : ", ") + recipe.slots[i].name + " = " + std::to_string(binding.slots[i]);
  }
  if (!values.empty()) values += ")";
  if (broken.is_guard) {
    return other_class(FailureCode::wrong_class, "this plan is for arguments with " + broken.text + values);
  }
  return invalid(FailureCode::where_failed, recipe.kernel + " needs " + broken.text + values);
}

Failure alias(const TensorArgument& written, const TensorArgument& other) {
  return invalid(FailureCode::aliased_argument, written.name + " is written and overlaps " + other.name + " in memory");
}

Failure no_default(const ScalarArgument& scalar) {
  return invalid(FailureCode::wrong_scalar, scalar.name + ": has no default and was not given");
}

Failure not_a_float(const ScalarArgument& scalar) {
  return invalid(FailureCode::wrong_scalar, scalar.name + ": expected " + dtype_text(scalar.dtype) + ", got a float");
}

Failure does_not_fit(const ScalarArgument& scalar, int64_t got) {
  return invalid(FailureCode::wrong_scalar,
                 scalar.name + ": " + std::to_string(got) + " does not fit " + dtype_text(scalar.dtype));
}

Failure unknown_kind(const ScalarArgument& scalar) {
  return invalid(FailureCode::wrong_scalar, scalar.name + ": is of an unknown kind");
}

}  // namespace tilewright::runtime::argument_errors
