#include "runtime/argument_table.h"

#include <algorithm>
#include <bit>

#include "runtime/element.h"

namespace tilewright::runtime {
namespace {

/// Extents, strides and the products on the way stay below this, so that no sum of eight of them leaves 63 bits.
constexpr int kNarrowBits = 28;
/// The same for an address: below 2^62.
constexpr int kAddressShift = 62 - kNarrowBits;

constexpr size_t kMaxValues = kMaxTensors * (2 * TW_MAX_RANK + 1);

}  // namespace

ArgumentTable::ArgumentTable(const Recipe& recipe)
    : slot_count_(recipe.slots.size()), scalar_count_(recipe.scalars.size()) {
  for (const TensorArgument& tensor : recipe.tensors) add_tensor(tensor);
  for (uint32_t i = 0; i < recipe.slots.size(); ++i) add_slot(recipe.slots[i], i, recipe);
  for (const Requirement& requirement : recipe.requirements) requirements_.emplace_back(requirement.holds);
  add_pairs(recipe);
}

void ArgumentTable::add_tensor(const TensorArgument& tensor) {
  const auto bytes = static_cast<uint64_t>(element_bytes(tensor.dtype));
  const auto rank = static_cast<uint32_t>(tensor.axes.size());
  const bool is_written = tensor.access != Access::In;
  tensors_.push_back({
      .dtype = tensor.dtype,
      .rank = static_cast<int32_t>(rank),
      .refused_flags = TW_TENSOR_ABSENT | (is_written ? TW_TENSOR_READ_ONLY : 0),
      .first = value_count_,
      .address_mask = std::max<uint64_t>(bytes, tensor.facts.alignment) - 1,
      .pitch_mask = tensor.facts.pitch_alignment - uint64_t{1},
      .max_bytes = tensor.facts.max_bytes > 0 ? static_cast<uint64_t>(tensor.facts.max_bytes) : UINT64_MAX,
      .shift = static_cast<uint32_t>(std::countr_zero(bytes)),
      .is_written = is_written,
      .has_unit_inner_stride = rank > 0 && tensor.facts.unit_inner_stride,
      .is_absent = tensor.is_absent,
  });
  for (uint32_t axis = 0; axis < rank; ++axis) {
    if (tensor.axes[axis].binds < 0 && !tensor.is_absent)
      extents_.push_back({value_count_ + axis, Formula(tensor.axes[axis].extent)});
  }
  value_count_ += 2 * rank + 1;
}

void ArgumentTable::add_slot(const Slot& slot, uint32_t index, const Recipe& recipe) {
  switch (slot.kind) {
    case SlotKind::Dim: copies_.push_back({index, tensors_[slot.argument].first + slot.axis}); return;
    case SlotKind::Stride: {
      const Tensor& tensor = tensors_[slot.argument];
      copies_.push_back({index, tensor.first + static_cast<uint32_t>(tensor.rank) + slot.axis});
      return;
    }
    case SlotKind::Misalignment: {
      const Tensor& tensor = tensors_[slot.argument];
      copies_.push_back({index, tensor.first + 2 * static_cast<uint32_t>(tensor.rank)});
      return;
    }
    case SlotKind::Present: present_.push_back({index, tensors_[slot.argument].is_absent ? 0u : 1u}); return;
    case SlotKind::Scalar: scalars_.push_back({index, slot.argument, recipe.scalars[slot.argument]}); return;
    case SlotKind::Computed: computed_.push_back({index, Formula(slot.value)}); return;
  }
}

void ArgumentTable::add_pairs(const Recipe& recipe) {
  for (uint32_t a = 0; a < tensors_.size(); ++a) {
    for (uint32_t b = a + 1; b < tensors_.size(); ++b) {
      const bool may_alias = std::ranges::count(recipe.tensors[a].may_alias, b) != 0 ||
                             std::ranges::count(recipe.tensors[b].may_alias, a) != 0;
      const bool are_there = !tensors_[a].is_absent && !tensors_[b].is_absent;
      if (are_there && (tensors_[a].is_written || tensors_[b].is_written) && !may_alias) apart_.push_back({a, b});
    }
  }
}

inline bool ArgumentTable::read_tensor(const Tensor& expected, const tw_tensor& tensor, int64_t* values,
                                       Binding::Range& range) {
  const auto base = reinterpret_cast<uintptr_t>(tensor.data);
  if (tensor.dtype != expected.dtype || tensor.rank != expected.rank || (tensor.flags & expected.refused_flags) != 0 ||
      base == 0 || (base & expected.address_mask) != 0 || (expected.rank > 0 && !tensor.extents)) {
    return false;
  }
  const auto rank = static_cast<size_t>(expected.rank);
  uint64_t all = base >> kAddressShift, elements = 1, last = 0, pitches = 0;
  bool has_zero_stride = false;
  for (size_t axis = rank; axis-- > 0;) {
    const auto extent = static_cast<uint64_t>(tensor.extents[axis]);
    const auto stride = tensor.strides ? static_cast<uint64_t>(tensor.strides[axis]) : elements;
    values[axis] = static_cast<int64_t>(extent);
    values[rank + axis] = static_cast<int64_t>(stride);
    all |= (extent - 1) | stride | elements;
    last += (extent - 1) * stride;
    elements *= extent;
    has_zero_stride |= stride == 0;
    if (axis + 1 < rank) pitches |= stride << expected.shift;
  }
  values[2 * rank] = static_cast<int64_t>(base & 63);
  const uint64_t bytes = (last + 1) << expected.shift;
  range = {base, base + bytes};
  return all >> kNarrowBits == 0 && (pitches & expected.pitch_mask) == 0 && bytes < expected.max_bytes &&
         !(has_zero_stride && expected.is_written) && (!expected.has_unit_inner_stride || values[2 * rank - 1] == 1);
}

inline bool ArgumentTable::read_scalar(const Scalar& scalar, const tw_arguments& arguments, int64_t& bits) {
  if (scalar.scalar >= arguments.scalar_count || arguments.scalars[scalar.scalar].kind == TW_SCALAR_DEFAULT) {
    bits = scalar.expected.default_bits;
    return scalar.expected.has_default;
  }
  const tw_scalar& given = arguments.scalars[scalar.scalar];
  const tw_dtype dtype = scalar.expected.dtype;
  if (given.kind == TW_SCALAR_FLOAT && is_float(dtype)) {
    bits = float_bits(given.value.floating, dtype);
    return true;
  }
  if (given.kind != TW_SCALAR_INTEGER || is_float(dtype)) return false;
  bits = integer_bits(given.value.integer, dtype);
  return bits == given.value.integer;
}

inline bool ArgumentTable::check_values(const int64_t* values, std::span<const int64_t> slots) const {
  for (const Extent& extent : extents_) {
    if (values[extent.value] != extent.wanted.value(slots)) return false;
  }
  for (const Formula& requirement : requirements_) {
    if (requirement.value(slots) == 0) return false;
  }
  return true;
}

bool ArgumentTable::bind(const tw_arguments& arguments, tw_device_kind device, Binding& binding) const {
  const size_t count = tensors_.size();
  if (arguments.tensor_count != count || (count > 0 && !arguments.tensors) || arguments.scalar_count > scalar_count_ ||
      (arguments.scalar_count > 0 && !arguments.scalars)) {
    return false;
  }
  int64_t values[kMaxValues];
  for (size_t i = 0; i < count; ++i) {
    const tw_tensor& tensor = arguments.tensors[i];
    if (tensors_[i].is_absent) {
      if ((tensor.flags & TW_TENSOR_ABSENT) == 0) return false;
      std::fill_n(values + tensors_[i].first, 2 * tensors_[i].rank + 1, 0);
      binding.ranges[i] = {0, 0};
      binding.pointers[i] = nullptr;
      continue;
    }
    if (tensor.device != device || !read_tensor(tensors_[i], tensor, values + tensors_[i].first, binding.ranges[i]))
      return false;
    binding.pointers[i] = tensor.data;
  }
  for (const Copy& copy : copies_) binding.slots[copy.slot] = values[copy.value];
  for (const Copy& present : present_) binding.slots[present.slot] = present.value;
  for (const Scalar& scalar : scalars_) {
    if (!read_scalar(scalar, arguments, binding.slots[scalar.slot])) return false;
  }
  const std::span<const int64_t> slots(binding.slots, slot_count_);
  for (const Computed& computed : computed_) binding.slots[computed.slot] = computed.formula.value(slots);
  if (!check_values(values, slots)) return false;
  for (const Pair& pair : apart_) {
    const Binding::Range &a = binding.ranges[pair.a], &b = binding.ranges[pair.b];
    if (a.high > b.low && b.high > a.low) return false;
  }
  return true;
}

}  // namespace tilewright::runtime
