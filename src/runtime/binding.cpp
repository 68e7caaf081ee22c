#include "runtime/binding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/argument_errors.h"
#include "runtime/element.h"

namespace tilewright::runtime {
namespace {

namespace errors = argument_errors;

/// Remainder of a power of two: alignments and element sizes all are (checked with the recipe).
uint64_t low_bits(uint64_t value, uint64_t power) { return value & (power - 1); }

bool is_absent(const tw_tensor& tensor) { return (tensor.flags & TW_TENSOR_ABSENT) != 0; }
int64_t misalignment_of(const tw_tensor& tensor) {
  return is_absent(tensor) ? 0 : static_cast<int64_t>(low_bits(reinterpret_cast<uintptr_t>(tensor.data), 64));
}
bool is_written(const TensorArgument& tensor) { return tensor.access != Access::In; }

/// What one tensor's extents and strides are, the strides in elements and worked out when the caller gives none.
struct Shape {
  int64_t extents[TW_MAX_RANK];
  int64_t strides[TW_MAX_RANK];
  int64_t low, high;  ///< element offsets of the first and last element; of no meaning when empty
  bool is_empty;
};

/// Steps of bind(). Each returns false after refuse(); the hot path builds no Status and no text.
class Binder {
 public:
  Binder(const Recipe& recipe, const tw_arguments& arguments, Binding& binding)
      : recipe_(recipe), arguments_(arguments), binding_(binding), tensor_count_(recipe.tensors.size()) {}

  [[gnu::flatten]] bool bind(tw_device_kind device) {
    if (!check_counts()) return false;
    for (size_t i = 0; i < tensor_count_; ++i) {
      if (!read_tensor(i, device)) return false;
    }
    return fill_slots() && check_axes() && check_requirements() && check_aliases();
  }

  bool bind_shapes() {
    if (!check_counts()) return false;
    for (size_t i = 0; i < tensor_count_; ++i) {
      const TensorArgument& expected = recipe_.tensors[i];
      const tw_tensor& tensor = arguments_.tensors[i];
      if (is_absent(tensor) || (is_written(expected) && !tensor.extents)) {
        if (is_absent(tensor) && !expected.is_absent) return refuse(errors::missing(expected));
        clear(shapes_[i]);
        continue;
      }
      if (expected.is_absent) return refuse(errors::compiled_without(expected));
      if (tensor.rank != static_cast<int32_t>(expected.axes.size())) return refuse(errors::rank(expected, tensor));
      if (!read_shape(expected, tensor, shapes_[i])) return false;
    }
    return check_dimensions_known() && fill_slots() && check_axes() && check_requirements();
  }

  Status result(bool bound) { return bound ? Status() : std::unexpected(std::move(failure_)); }

 private:
  [[gnu::cold, gnu::noinline]] bool refuse(Failure failure) {
    failure_ = std::move(failure);
    return false;
  }
  static void clear(Shape& shape) {
    std::fill_n(shape.extents, TW_MAX_RANK, 0);
    std::fill_n(shape.strides, TW_MAX_RANK, 0);
    shape.is_empty = true;
  }

  bool check_counts();
  bool read_tensor(size_t index, tw_device_kind device);
  bool read_shape(const TensorArgument& expected, const tw_tensor& tensor, Shape& shape);
  bool read_range(const TensorArgument& expected, const tw_tensor& tensor, const Shape& shape, Binding::Range& range);
  bool check_strides(const TensorArgument& expected, const Shape& shape);
  bool check_dimensions_known();
  bool fill_slots();
  bool read_scalar(size_t index, int64_t& bits);
  bool check_axes();
  bool check_requirements();
  bool check_aliases();
  bool is_interleaved(size_t a, size_t b) const;

  const Recipe& recipe_;
  const tw_arguments& arguments_;
  Binding& binding_;
  const size_t tensor_count_;
  Shape shapes_[kMaxTensors];
  Failure failure_;
};

bool Binder::check_counts() {
  if (arguments_.tensor_count != tensor_count_) return refuse(errors::tensor_count(recipe_, arguments_.tensor_count));
  if (arguments_.scalar_count > recipe_.scalars.size())
    return refuse(errors::scalar_count(recipe_, arguments_.scalar_count));
  if ((arguments_.tensor_count && !arguments_.tensors) || (arguments_.scalar_count && !arguments_.scalars)) {
    return refuse(errors::null_array(recipe_));
  }
  return true;
}

bool Binder::read_tensor(size_t index, tw_device_kind device) {
  const TensorArgument& expected = recipe_.tensors[index];
  const tw_tensor& tensor = arguments_.tensors[index];
  if (is_absent(tensor)) {
    if (!expected.is_absent) return refuse(errors::missing(expected));
    binding_.pointers[index] = nullptr;
    binding_.ranges[index] = {0, 0};
    clear(shapes_[index]);
    return true;
  }
  if (expected.is_absent) return refuse(errors::compiled_without(expected));
  const bool is_protected = is_written(expected) && (tensor.flags & TW_TENSOR_READ_ONLY);
  if (tensor.dtype != expected.dtype || tensor.rank != static_cast<int32_t>(expected.axes.size()) ||
      tensor.device != device || is_protected) {
    return refuse(errors::identity(expected, tensor, device));
  }
  binding_.pointers[index] = tensor.data;
  Shape& shape = shapes_[index];
  if (!read_shape(expected, tensor, shape)) return false;
  if (shape.is_empty) {
    binding_.ranges[index] = {0, 0};
    return true;
  }
  return read_range(expected, tensor, shape, binding_.ranges[index]) && check_strides(expected, shape);
}

bool Binder::read_shape(const TensorArgument& expected, const tw_tensor& tensor, Shape& shape) {
  const auto rank = static_cast<size_t>(tensor.rank);
  if (rank > 0 && !tensor.extents) return refuse(errors::null_extents(expected));
  shape.is_empty = false;
  shape.low = shape.high = 0;
  int64_t elements = 1;
  size_t far_axis = rank;
  for (size_t axis = rank; axis-- > 0;) {
    const int64_t extent = tensor.extents[axis];
    const int64_t stride = tensor.strides ? tensor.strides[axis] : elements;
    if (extent < 0) return refuse(errors::negative_extent(expected, axis, extent));
    shape.extents[axis] = extent;
    shape.strides[axis] = stride;
    if (extent == 0) {
      shape.is_empty = true;
      continue;
    }
    if (!multiply_exact(elements, extent, elements)) return refuse(errors::too_many_elements(expected));
    int64_t span = 0;
    int64_t& end = stride < 0 ? shape.low : shape.high;
    if (!multiply_exact(extent - 1, stride, span) || __builtin_add_overflow(end, span, &end)) far_axis = axis;
  }
  return shape.is_empty || far_axis == rank || refuse(errors::far_stride(expected, far_axis));
}

/// The bytes its elements touch, exact or refused, and the facts about the address.
bool Binder::read_range(const TensorArgument& expected, const tw_tensor& tensor, const Shape& shape,
                        Binding::Range& range) {
  if (!tensor.data) return refuse(errors::null_data(expected));
  const auto base = reinterpret_cast<uintptr_t>(tensor.data);
  const int64_t bytes = element_bytes(expected.dtype);
  int64_t below = 0, above = 0;
  if (shape.high == INT64_MAX || !multiply_exact(shape.low, bytes, below) ||
      !multiply_exact(shape.high + 1, bytes, above) ||
      __builtin_add_overflow(base, static_cast<uintptr_t>(above), &range.high) ||
      __builtin_sub_overflow(base, uintptr_t{0} - static_cast<uintptr_t>(below), &range.low)) {
    return refuse(errors::outside_address_space(expected));
  }
  const Facts& facts = expected.facts;
  if (low_bits(base, static_cast<uint64_t>(bytes)) != 0) return refuse(errors::element_alignment(expected));
  if (low_bits(base, facts.alignment) != 0) return refuse(errors::class_alignment(expected));
  if (facts.max_bytes > 0 && range.high - range.low >= static_cast<uintptr_t>(facts.max_bytes)) {
    return refuse(errors::class_bytes(expected, range.high - range.low));
  }
  return true;
}

bool Binder::check_strides(const TensorArgument& expected, const Shape& shape) {
  const size_t rank = expected.axes.size();
  const auto bytes = static_cast<uint64_t>(element_bytes(expected.dtype));
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t stride = shape.strides[axis];
    if (shape.extents[axis] == 1) continue;
    if (stride == 0 && is_written(expected)) return refuse(errors::zero_stride(expected, axis));
    if (axis + 1 == rank) {
      if (expected.facts.unit_inner_stride && stride != 1)
        return refuse(errors::class_inner_stride(expected, axis, stride));
    } else if (low_bits(static_cast<uint64_t>(stride) * bytes, expected.facts.pitch_alignment) != 0) {
      return refuse(errors::class_pitch(expected, axis, stride));
    }
  }
  return true;
}

/// A dimension that only an output has needs that output's extents.
bool Binder::check_dimensions_known() {
  for (const Slot& slot : recipe_.slots) {
    if (slot.kind == SlotKind::Dim && !arguments_.tensors[slot.argument].extents)
      return refuse(errors::unknown_dimension(recipe_.tensors[slot.argument], slot.axis));
  }
  return true;
}

bool Binder::fill_slots() {
  int64_t* next = binding_.slots;
  for (const Slot& slot : recipe_.slots) {
    switch (slot.kind) {
      case SlotKind::Dim: *next = shapes_[slot.argument].extents[slot.axis]; break;
      case SlotKind::Stride: *next = shapes_[slot.argument].strides[slot.axis]; break;
      case SlotKind::Present: *next = !is_absent(arguments_.tensors[slot.argument]); break;
      case SlotKind::Misalignment: *next = misalignment_of(arguments_.tensors[slot.argument]); break;
      case SlotKind::Computed: *next = evaluate(slot.value, {binding_.slots, next}); break;
      case SlotKind::Scalar:
        if (!read_scalar(slot.argument, *next)) return false;
        break;
    }
    ++next;
  }
  return true;
}

bool Binder::read_scalar(size_t index, int64_t& bits) {
  const ScalarArgument& expected = recipe_.scalars[index];
  if (index >= arguments_.scalar_count || arguments_.scalars[index].kind == TW_SCALAR_DEFAULT) {
    bits = expected.default_bits;
    return expected.has_default || refuse(errors::no_default(expected));
  }
  const tw_scalar& given = arguments_.scalars[index];
  if (given.kind == TW_SCALAR_FLOAT) {
    if (!is_float(expected.dtype)) return refuse(errors::not_a_float(expected));
    bits = float_bits(given.value.floating, expected.dtype);
    return true;
  }
  if (given.kind != TW_SCALAR_INTEGER) return refuse(errors::unknown_kind(expected));
  const int64_t value = given.value.integer;
  if (is_float(expected.dtype)) {
    bits = float_bits(static_cast<double>(value), expected.dtype);
    return true;
  }
  bits = integer_bits(value, expected.dtype);
  return bits == value || refuse(errors::does_not_fit(expected, value));
}

bool Binder::check_axes() {
  const auto slots = binding_.slot_span(recipe_);
  for (size_t i = 0; i < tensor_count_; ++i) {
    const TensorArgument& expected = recipe_.tensors[i];
    if (expected.is_absent || !arguments_.tensors[i].extents) continue;  // to be inferred: an output of bind_shapes
    const int64_t* got = shapes_[i].extents;
    for (const Axis& axis : expected.axes) {
      const int64_t wanted = axis.binds >= 0 ? *got : evaluate(axis.extent, slots);
      if (*got != wanted) return refuse(errors::extent(recipe_, i, got - shapes_[i].extents, *got, wanted));
      ++got;
    }
  }
  return true;
}

bool Binder::check_requirements() {
  const auto slots = binding_.slot_span(recipe_);
  for (const Requirement& requirement : recipe_.requirements) {
    if (evaluate(requirement.holds, slots) == 0) return refuse(errors::requirement(recipe_, requirement, binding_));
  }
  return true;
}

bool Binder::check_aliases() {
  for (size_t i = 0; i < tensor_count_; ++i) {
    const TensorArgument& written = recipe_.tensors[i];
    const Binding::Range& a = binding_.ranges[i];
    if (!is_written(written) || a.low == a.high) continue;
    for (size_t j = 0; j < tensor_count_; ++j) {
      const Binding::Range& b = binding_.ranges[j];
      if (j == i || b.low == b.high || a.high <= b.low || b.high <= a.low) continue;
      const TensorArgument& other = recipe_.tensors[j];
      const bool is_allowed = std::ranges::count(written.may_alias, j) || std::ranges::count(other.may_alias, i);
      if (!is_allowed && !is_interleaved(i, j)) return refuse(errors::alias(written, other));
    }
  }
  return true;
}

/// Two tensors whose byte ranges overlap may still share no element, as the left and right columns of one matrix: when
/// every stride but those of the inner runs is a multiple of one pitch, the runs can be told apart modulo that pitch.
bool Binder::is_interleaved(size_t a, size_t b) const {
  uint64_t pitch = 0;
  uint64_t run[2] = {};
  const size_t both[2] = {a, b};
  for (int which = 0; which < 2; ++which) {
    const TensorArgument& tensor = recipe_.tensors[both[which]];
    const Shape& shape = shapes_[both[which]];
    const auto bytes = static_cast<uint64_t>(element_bytes(tensor.dtype));
    run[which] = bytes;
    for (size_t axis = 0; axis < tensor.axes.size(); ++axis) {
      if (shape.extents[axis] == 1) continue;
      if (axis + 1 == tensor.axes.size() && shape.strides[axis] == 1) {
        run[which] = bytes * static_cast<uint64_t>(shape.extents[axis]);
      } else {
        pitch = std::gcd(pitch, static_cast<uint64_t>(std::abs(shape.strides[axis])) * bytes);
      }
    }
  }
  if (pitch == 0) return false;
  const auto a_base = reinterpret_cast<uintptr_t>(arguments_.tensors[a].data);
  const auto b_base = reinterpret_cast<uintptr_t>(arguments_.tensors[b].data);
  const uint64_t distance = b_base >= a_base ? (b_base - a_base) % pitch : (pitch - (a_base - b_base) % pitch) % pitch;
  return distance >= run[0] && distance + run[1] <= pitch;
}

}  // namespace

Status bind(const Recipe& recipe, const tw_arguments& arguments, tw_device_kind device, Binding& binding) {
  Binder binder(recipe, arguments, binding);
  return binder.result(binder.bind(device));
}

Status bind_shapes(const Recipe& recipe, const tw_arguments& arguments, Binding& binding) {
  Binder binder(recipe, arguments, binding);
  return binder.result(binder.bind_shapes());
}

void tensor_extents(const Recipe& recipe, size_t index, const Binding& binding, int64_t* extents) {
  const TensorArgument& tensor = recipe.tensors[index];
  for (size_t axis = 0; axis < tensor.axes.size(); ++axis) {
    extents[axis] = tensor.axes[axis].binds >= 0 ? binding.slots[tensor.axes[axis].binds]
                                                 : evaluate(tensor.axes[axis].extent, binding.slot_span(recipe));
  }
}

}  // namespace tilewright::runtime
