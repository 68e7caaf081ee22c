#include "runtime/binding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/element.h"

namespace tilewright::runtime {
namespace {

std::string quoted_dtype(int32_t dtype) {
  return is_dtype(dtype) ? std::string(name(static_cast<tw_dtype>(dtype))) : "dtype " + std::to_string(dtype);
}

std::string axis_text(const TensorArgument& tensor, size_t axis) {
  std::string text = tensor.name + ": axis " + std::to_string(axis);
  if (!tensor.axes[axis].text.empty()) text += " (" + tensor.axes[axis].text + ")";
  return text;
}

std::unexpected<Failure> fact(FailureCode code, std::string message) {
  return std::unexpected(Failure{code, std::move(message), true});
}

bool is_absent(const tw_tensor& tensor) { return (tensor.flags & TW_TENSOR_ABSENT) != 0; }
bool is_written(const TensorArgument& tensor) { return tensor.access != Access::In; }

/// Strides in elements, worked out when the caller gives none.
struct Shape {
  int64_t extents[TW_MAX_RANK];
  int64_t strides[TW_MAX_RANK];
  bool is_empty;
};

Status read_shape(const TensorArgument& expected, const tw_tensor& tensor, Shape& shape) {
  const auto rank = static_cast<size_t>(tensor.rank);
  if (rank > 0 && !tensor.extents)
    return fail(FailureCode::null_argument, expected.name + ": the array of extents is null");
  shape.is_empty = false;
  int64_t running = 1;
  for (size_t axis = rank; axis-- > 0;) {
    const int64_t extent = tensor.extents[axis];
    if (extent < 0) {
      return fail(FailureCode::wrong_extent,
                  axis_text(expected, axis) + " has a negative extent, " + std::to_string(extent));
    }
    shape.extents[axis] = extent;
    shape.is_empty = shape.is_empty || extent == 0;
    shape.strides[axis] = tensor.strides ? tensor.strides[axis] : running;
    if (!multiply_exact(running, std::max<int64_t>(extent, 1), running)) {
      return fail(FailureCode::too_large, expected.name + ": its extents have more than 2^63 elements");
    }
  }
  return {};
}

/// The bytes its elements touch; exact or refused.
Status read_range(const TensorArgument& expected, const tw_tensor& tensor, const Shape& shape, Binding::Range& range) {
  const auto base = reinterpret_cast<uintptr_t>(tensor.data);
  range = {base, base};
  if (shape.is_empty) return {};
  int64_t low = 0, high = 0;
  for (size_t axis = 0; axis < expected.axes.size(); ++axis) {
    int64_t span = 0;
    const bool fits = multiply_exact(shape.extents[axis] - 1, shape.strides[axis], span) &&
                      !__builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high);
    if (!fits)
      return fail(FailureCode::too_large, axis_text(expected, axis) + " has a stride that leaves the address space");
  }
  const int64_t bytes = element_bytes(expected.dtype);
  int64_t low_bytes = 0, high_bytes = 0;
  uintptr_t last = 0;
  if (high == INT64_MAX || !multiply_exact(low, bytes, low_bytes) || !multiply_exact(high + 1, bytes, high_bytes) ||
      __builtin_add_overflow(base, static_cast<uintptr_t>(high_bytes), &last) ||
      base < static_cast<uintptr_t>(-low_bytes)) {
    if (!tensor.data) return fail(FailureCode::null_argument, expected.name + ": its data is null");
    return fail(FailureCode::too_large, expected.name + ": its elements leave the address space");
  }
  range = {base - static_cast<uintptr_t>(-low_bytes), last};
  return {};
}

Status check_identity(const TensorArgument& expected, const tw_tensor& tensor, tw_device_kind device) {
  if (tensor.dtype != expected.dtype) {
    return fail(FailureCode::wrong_dtype, expected.name + ": expected " + std::string(name(expected.dtype)) + ", got " +
                                              quoted_dtype(tensor.dtype));
  }
  if (tensor.rank != static_cast<int32_t>(expected.axes.size())) {
    return fail(FailureCode::wrong_rank, expected.name + ": expected " + std::to_string(expected.axes.size()) +
                                             " axes, got " + std::to_string(tensor.rank));
  }
  if (tensor.device != device) {
    return fail(FailureCode::wrong_device, expected.name + ": is not in the memory of the plan's device");
  }
  if (is_written(expected) && (tensor.flags & TW_TENSOR_READ_ONLY)) {
    return fail(FailureCode::read_only_argument, expected.name + ": the kernel writes it, but the tensor is read-only");
  }
  return {};
}

Status check_memory(const TensorArgument& expected, const tw_tensor& tensor, const Shape& shape,
                    const Binding::Range& range) {
  if (shape.is_empty) return {};
  if (!tensor.data) return fail(FailureCode::null_argument, expected.name + ": its data is null");
  const auto address = reinterpret_cast<uintptr_t>(tensor.data);
  const auto bytes = static_cast<uintptr_t>(element_bytes(expected.dtype));
  if (address % bytes != 0) {
    return fail(FailureCode::wrong_alignment,
                expected.name + ": its address is not a multiple of the element size, " + std::to_string(bytes));
  }
  const Facts& facts = expected.facts;
  if (address % facts.alignment != 0) {
    return fact(FailureCode::wrong_alignment, expected.name + ": this plan needs an address that is a multiple of " +
                                                  std::to_string(facts.alignment) + " bytes");
  }
  if (facts.max_bytes > 0 && range.high - range.low >= static_cast<uintptr_t>(facts.max_bytes)) {
    return fact(FailureCode::too_large, expected.name + ": spans " + std::to_string(range.high - range.low) +
                                            " bytes, this plan takes less than " + std::to_string(facts.max_bytes));
  }
  return {};
}

Status check_strides(const TensorArgument& expected, const Shape& shape) {
  if (shape.is_empty) return {};
  const size_t rank = expected.axes.size();
  const int64_t bytes = element_bytes(expected.dtype);
  for (size_t axis = 0; axis < rank; ++axis) {
    if (shape.extents[axis] == 1) continue;
    const int64_t stride = shape.strides[axis];
    if (stride == 0 && is_written(expected)) {
      return fail(FailureCode::wrong_stride, axis_text(expected, axis) + " has stride 0, but the kernel writes it");
    }
    if (axis + 1 == rank) {
      if (!expected.facts.unit_inner_stride || stride == 1) continue;
      return fact(FailureCode::wrong_stride, axis_text(expected, axis) + " has stride " + std::to_string(stride) +
                                                 ", this plan needs 1 on the last axis");
    }
    if (static_cast<uint64_t>(stride) * static_cast<uint64_t>(bytes) % expected.facts.pitch_alignment != 0) {
      return fact(FailureCode::wrong_stride, axis_text(expected, axis) + " has a stride of " + std::to_string(stride) +
                                                 " elements, this plan needs a multiple of " +
                                                 std::to_string(expected.facts.pitch_alignment) + " bytes");
    }
  }
  return {};
}

/// What one tensor's extents and strides mean before the slots are filled.
struct Tensors {
  Shape shapes[kMaxTensors];
};

Status check_axes(const Recipe& recipe, const tw_arguments& arguments, const Tensors& tensors, const Binding& binding) {
  const auto slots = binding.slot_span(recipe);
  for (size_t i = 0; i < recipe.tensors.size(); ++i) {
    if (is_absent(arguments.tensors[i])) continue;
    const TensorArgument& expected = recipe.tensors[i];
    for (size_t axis = 0; axis < expected.axes.size(); ++axis) {
      if (expected.axes[axis].binds >= 0) continue;
      const int64_t wanted = evaluate(expected.axes[axis].extent, slots);
      const int64_t got = tensors.shapes[i].extents[axis];
      if (got == wanted) continue;
      std::string message =
          axis_text(expected, axis) + " has extent " + std::to_string(got) + ", expected " + std::to_string(wanted);
      const auto& code = expected.axes[axis].extent.code;
      if (code.size() == 1 && code[0].op == ExpressionOp::Slot) {  // a name: say who gave it its value
        const Slot& slot = recipe.slots[static_cast<size_t>(code[0].value)];
        if (slot.kind == SlotKind::Dim) {
          message += ", the extent of axis " + std::to_string(slot.axis) + " of " + recipe.tensors[slot.argument].name;
        }
      }
      return fail(FailureCode::wrong_extent, std::move(message));
    }
  }
  return {};
}

/// Two tensors whose byte ranges overlap may still be interleaved: with every stride but the inner runs a multiple of
/// one pitch, the runs can be told apart modulo that pitch.
bool is_interleaved(const TensorArgument& a, const Shape& a_shape, const TensorArgument& b, const Shape& b_shape,
                    uintptr_t a_base, uintptr_t b_base) {
  uint64_t pitch = 0;
  int64_t run[2] = {1, 1};
  const std::pair<const TensorArgument*, const Shape*> both[2] = {{&a, &a_shape}, {&b, &b_shape}};
  for (int which = 0; which < 2; ++which) {
    const auto& [argument, shape] = both[which];
    const size_t rank = argument->axes.size();
    const int64_t bytes = element_bytes(argument->dtype);
    run[which] = bytes;
    for (size_t axis = 0; axis < rank; ++axis) {
      if (shape->extents[axis] == 1) continue;
      if (axis + 1 == rank && shape->strides[axis] == 1) {
        run[which] = bytes * shape->extents[axis];
      } else {
        pitch = std::gcd(pitch, static_cast<uint64_t>(std::abs(shape->strides[axis])) * static_cast<uint64_t>(bytes));
      }
    }
  }
  if (pitch == 0) return false;
  const uint64_t distance = b_base >= a_base ? (b_base - a_base) % pitch : (pitch - (a_base - b_base) % pitch) % pitch;
  return distance >= static_cast<uint64_t>(run[0]) && distance + static_cast<uint64_t>(run[1]) <= pitch;
}

Status check_aliases(const Recipe& recipe, const tw_arguments& arguments, const Tensors& tensors,
                     const Binding& binding) {
  for (size_t i = 0; i < recipe.tensors.size(); ++i) {
    const TensorArgument& written = recipe.tensors[i];
    const Binding::Range& a = binding.ranges[i];
    if (!is_written(written) || a.low == a.high) continue;
    for (size_t j = 0; j < recipe.tensors.size(); ++j) {
      const TensorArgument& other = recipe.tensors[j];
      const Binding::Range& b = binding.ranges[j];
      if (j == i || b.low == b.high || a.high <= b.low || b.high <= a.low) continue;
      const bool is_allowed = std::ranges::count(written.may_alias, j) || std::ranges::count(other.may_alias, i);
      if (is_allowed || is_interleaved(written, tensors.shapes[i], other, tensors.shapes[j],
                                       reinterpret_cast<uintptr_t>(arguments.tensors[i].data),
                                       reinterpret_cast<uintptr_t>(arguments.tensors[j].data))) {
        continue;
      }
      return fail(FailureCode::aliased_argument,
                  written.name + " is written and overlaps " + other.name + " in memory");
    }
  }
  return {};
}

Status scalar_bits(const ScalarArgument& expected, const tw_scalar* scalar, int64_t& bits) {
  if (!scalar || scalar->kind == TW_SCALAR_DEFAULT) {
    if (!expected.has_default)
      return fail(FailureCode::wrong_scalar, expected.name + ": has no default and was not given");
    bits = expected.default_bits;
    return {};
  }
  if (scalar->kind == TW_SCALAR_FLOAT) {
    if (!is_float(expected.dtype)) {
      return fail(FailureCode::wrong_scalar,
                  expected.name + ": expected " + std::string(name(expected.dtype)) + ", got a float");
    }
    bits = float_bits(scalar->value.floating, expected.dtype);
    return {};
  }
  if (scalar->kind != TW_SCALAR_INTEGER)
    return fail(FailureCode::wrong_scalar, expected.name + ": is of an unknown kind");
  const int64_t value = scalar->value.integer;
  if (is_float(expected.dtype)) {
    bits = float_bits(static_cast<double>(value), expected.dtype);
    return {};
  }
  bits = integer_bits(value, expected.dtype);
  if (bits != value) {
    return fail(FailureCode::wrong_scalar,
                expected.name + ": " + std::to_string(value) + " does not fit " + std::string(name(expected.dtype)));
  }
  return {};
}

Status fill_slots(const Recipe& recipe, const tw_arguments& arguments, const Tensors& tensors, Binding& binding) {
  for (size_t i = 0; i < recipe.slots.size(); ++i) {
    const Slot& slot = recipe.slots[i];
    switch (slot.kind) {
      case SlotKind::Dim: binding.slots[i] = tensors.shapes[slot.argument].extents[slot.axis]; break;
      case SlotKind::Stride: binding.slots[i] = tensors.shapes[slot.argument].strides[slot.axis]; break;
      case SlotKind::Present: binding.slots[i] = !is_absent(arguments.tensors[slot.argument]); break;
      case SlotKind::Computed: binding.slots[i] = evaluate(slot.value, {binding.slots, i}); break;
      case SlotKind::Scalar: {
        const tw_scalar* given = slot.argument < arguments.scalar_count ? &arguments.scalars[slot.argument] : nullptr;
        if (Status status = scalar_bits(recipe.scalars[slot.argument], given, binding.slots[i]); !status) return status;
        break;
      }
    }
  }
  return {};
}

Status check_requirements(const Recipe& recipe, const Binding& binding) {
  const auto slots = binding.slot_span(recipe);
  for (const Requirement& requirement : recipe.requirements) {
    if (evaluate(requirement.holds, slots) != 0) continue;
    std::string values;
    for (size_t i = 0; i < recipe.slots.size(); ++i) {
      if (recipe.slots[i].kind != SlotKind::Dim) continue;
      values += (values.empty() ? " (" : ", ") + recipe.slots[i].name + " = " + std::to_string(slots[i]);
    }
    if (!values.empty()) values += ")";
    if (requirement.is_guard) {
      return fact(FailureCode::wrong_class, "this plan is for arguments with " + requirement.text + values);
    }
    return fail(FailureCode::where_failed, recipe.kernel + " needs " + requirement.text + values);
  }
  return {};
}

Status check_counts(const Recipe& recipe, const tw_arguments& arguments) {
  if (arguments.tensor_count != recipe.tensors.size()) {
    std::string names;
    for (const TensorArgument& tensor : recipe.tensors) names += (names.empty() ? "" : ", ") + tensor.name;
    return fail(FailureCode::argument_count, recipe.kernel + " takes " + std::to_string(recipe.tensors.size()) +
                                                 " tensors (" + names + "), got " +
                                                 std::to_string(arguments.tensor_count));
  }
  if (arguments.scalar_count > recipe.scalars.size()) {
    return fail(FailureCode::argument_count, recipe.kernel + " takes " + std::to_string(recipe.scalars.size()) +
                                                 " scalars, got " + std::to_string(arguments.scalar_count));
  }
  if ((arguments.tensor_count && !arguments.tensors) || (arguments.scalar_count && !arguments.scalars)) {
    return fail(FailureCode::null_argument, recipe.kernel + ": the array of arguments is null");
  }
  return {};
}

}  // namespace

Status bind(const Recipe& recipe, const tw_arguments& arguments, tw_device_kind device, Binding& binding) {
  if (Status status = check_counts(recipe, arguments); !status) return status;
  Tensors tensors;
  for (size_t i = 0; i < recipe.tensors.size(); ++i) {
    const TensorArgument& expected = recipe.tensors[i];
    const tw_tensor& tensor = arguments.tensors[i];
    Shape& shape = tensors.shapes[i];
    if (is_absent(tensor)) {
      if (!expected.is_optional) return fail(FailureCode::null_argument, expected.name + ": is missing");
      binding.pointers[i] = nullptr;
      binding.ranges[i] = {0, 0};
      std::fill_n(shape.extents, TW_MAX_RANK, 0);
      std::fill_n(shape.strides, TW_MAX_RANK, 0);
      continue;
    }
    if (Status status = check_identity(expected, tensor, device); !status) return status;
    if (Status status = read_shape(expected, tensor, shape); !status) return status;
    if (Status status = read_range(expected, tensor, shape, binding.ranges[i]); !status) return status;
    if (Status status = check_memory(expected, tensor, shape, binding.ranges[i]); !status) return status;
    if (Status status = check_strides(expected, shape); !status) return status;
    binding.pointers[i] = tensor.data;
  }
  if (Status status = fill_slots(recipe, arguments, tensors, binding); !status) return status;
  if (Status status = check_axes(recipe, arguments, tensors, binding); !status) return status;
  if (Status status = check_requirements(recipe, binding); !status) return status;
  return check_aliases(recipe, arguments, tensors, binding);
}

Status bind_shapes(const Recipe& recipe, const tw_arguments& arguments, Binding& binding) {
  if (Status status = check_counts(recipe, arguments); !status) return status;
  Tensors tensors;
  for (size_t i = 0; i < recipe.tensors.size(); ++i) {
    const TensorArgument& expected = recipe.tensors[i];
    const tw_tensor& tensor = arguments.tensors[i];
    Shape& shape = tensors.shapes[i];
    std::fill_n(shape.extents, TW_MAX_RANK, 0);
    std::fill_n(shape.strides, TW_MAX_RANK, 0);
    if (is_absent(tensor) || (is_written(expected) && !tensor.extents)) continue;
    if (tensor.rank != static_cast<int32_t>(expected.axes.size())) {
      return fail(FailureCode::wrong_rank, expected.name + ": expected " + std::to_string(expected.axes.size()) +
                                               " axes, got " + std::to_string(tensor.rank));
    }
    if (Status status = read_shape(expected, tensor, shape); !status) return status;
  }
  if (Status status = fill_slots(recipe, arguments, tensors, binding); !status) return status;
  return check_requirements(recipe, binding);
}

void tensor_extents(const Recipe& recipe, size_t index, const Binding& binding, int64_t* extents) {
  const TensorArgument& tensor = recipe.tensors[index];
  for (size_t axis = 0; axis < tensor.axes.size(); ++axis) {
    extents[axis] = tensor.axes[axis].binds >= 0 ? binding.slots[tensor.axes[axis].binds]
                                                 : evaluate(tensor.axes[axis].extent, binding.slot_span(recipe));
  }
}

}  // namespace tilewright::runtime
