#include "fuzz/case.h"

#include <cmath>
#include <cstring>
#include <random>

#include "interp/scalar.h"

namespace tilewright::fuzz {
namespace {

constexpr int64_t kMargin = 256;  // bytes of canary on either side
constexpr std::byte kCanary{0xA5};

int64_t extent_value(const Case& c, ir::Index extent) {
  return ir::evaluate(extent, [&](const ir::Value* v) -> int64_t {
    for (size_t i = 0; i < c.kernel.dimensions.size(); ++i) {
      if (c.kernel.dimensions[i].value == v) return c.dimensions[i];
    }
    return 0;
  });
}

uint64_t random_bits(DType dtype, const TensorPlan& plan, Comparison comparison, std::mt19937_64& random) {
  if (dtype == DType::Bool) return random() & 1;
  if (!is_float(dtype)) {
    // Mostly small, sometimes any bit pattern.
    const auto small = static_cast<int64_t>(random() % 15) - (is_signed_int(dtype) ? 7 : 0);
    return interp::bits_of(dtype, 0, random() % 4 ? small : static_cast<int64_t>(random()));
  }
  if (comparison == Comparison::Bounded) {
    std::normal_distribution<double> normal(0, plan.range.limit / 4);
    return interp::bits_of(dtype, std::clamp(normal(random), -plan.range.limit, plan.range.limit), 0);
  }
  const double unit = std::ldexp(1.0, -plan.range.fraction);
  const auto steps = static_cast<int64_t>(plan.range.limit / unit);
  const auto v = static_cast<double>(static_cast<int64_t>(random() % static_cast<uint64_t>(2 * steps + 1)) - steps);
  return interp::bits_of(dtype, v * unit, 0);
}

}  // namespace

Arrays::Arrays(const Case& c) {
  slabs_.resize(c.kernel.tensors.size());
  call_.scalars = c.scalars;
  for (const int64_t d : c.dimensions) call_.dimensions.emplace_back(d);
  for (size_t t = 0; t < c.kernel.tensors.size(); ++t) {
    const ir::TensorArgument& argument = c.kernel.tensors[t];
    const DType dtype = argument.buffer->type.dtype;
    const int64_t width = bytes(dtype);
    interp::TensorRef ref = {.dtype = dtype};
    for (const ir::Index e : argument.buffer->type.shape) ref.shape.push_back(extent_value(c, e));
    if (argument.direction == ir::Direction::Workspace) {
      call_.tensors.push_back(std::move(ref));
      continue;
    }
    ref.strides.assign(ref.shape.size(), 1);
    for (size_t d = ref.shape.size(); d-- > 1;) {
      ref.strides[d - 1] =
          ref.strides[d] * std::max<int64_t>(ref.shape[d], 1) + (d + 1 == ref.shape.size() ? c.tensors[t].padding : 0);
    }
    const int64_t elements = ref.shape.empty() ? 1 : ref.shape[0] * ref.strides[0];
    Slab& slab = slabs_[t];
    slab.bytes.assign(static_cast<size_t>(elements * width + 2 * kMargin), kCanary);
    slab.is_element.assign(slab.bytes.size(), false);
    std::mt19937_64 random(c.data_seed * 1000003 + t);
    const bool is_input = argument.direction != ir::Direction::Out;
    std::vector<int64_t> at(ref.shape.size(), 0);
    bool more = true;
    for (const int64_t e : ref.shape) more &= e > 0;
    while (more) {
      int64_t offset = kMargin;
      for (size_t d = 0; d < at.size(); ++d) offset += at[d] * ref.strides[d] * width;
      const uint64_t bits = is_input ? random_bits(dtype, c.tensors[t], c.comparison, random) : 0x5A5A5A5A5A5A5A5A;
      std::memcpy(slab.bytes.data() + offset, &bits, static_cast<size_t>(width));
      if (dtype == DType::Bool && !is_input) slab.bytes[static_cast<size_t>(offset)] = std::byte{1};
      for (int64_t b = 0; b < width; ++b) slab.is_element[static_cast<size_t>(offset + b)] = true;
      more = false;
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < ref.shape[d]) {
          more = true;
          break;
        }
        at[d] = 0;
      }
    }
    ref.data = slab.bytes.data() + kMargin;
    call_.tensors.push_back(std::move(ref));
  }
}

int Arrays::damaged_canary() const {
  for (size_t t = 0; t < slabs_.size(); ++t) {
    for (size_t i = 0; i < slabs_[t].bytes.size(); ++i) {
      if (!slabs_[t].is_element[i] && slabs_[t].bytes[i] != kCanary) return static_cast<int>(t);
    }
  }
  return -1;
}

}  // namespace tilewright::fuzz
