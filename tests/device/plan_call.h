// Evaluates the recipe of a GpuPlan for given arrays: slots, pointers, grids, tensor maps. Shared by the interpreter
// tests and the runner.
#pragma once

#include <string>
#include <vector>

#include "base/tensor_map.h"
#include "plan/gpu/plan.h"
#include "runtime/expression.h"

namespace tilewright::device_cases {

struct Array {
  uint64_t address = 0;  ///< 0: absent
  std::vector<int64_t> shape;
  int64_t pitch = 0;  ///< elements of the last but one axis; 0: dense
  int64_t stride(size_t axis) const {
    int64_t s = 1;
    for (size_t d = shape.size(); d-- > axis + 1;) s = d + 1 == shape.size() && pitch ? pitch : s * shape[d];
    return s;
  }
};

struct PlanCall {
  std::vector<int64_t> slots;
  std::vector<uint64_t> pointers;  ///< tensors; workspaces follow once the caller has them
  std::vector<int64_t> workspace_bytes, workspace_zeroed;
  std::string problem;  ///< the first requirement that does not hold
};

inline PlanCall begin_call(const runtime::Recipe& recipe, const std::vector<Array>& arrays,
                           const std::vector<int64_t>& scalars) {
  PlanCall c;
  for (const runtime::Slot& slot : recipe.slots) {
    switch (slot.kind) {
      case runtime::SlotKind::Dim: c.slots.push_back(arrays.at(slot.argument).shape.at(slot.axis)); break;
      case runtime::SlotKind::Stride: c.slots.push_back(arrays.at(slot.argument).stride(slot.axis)); break;
      case runtime::SlotKind::Scalar: c.slots.push_back(scalars.at(slot.argument)); break;
      case runtime::SlotKind::Present: c.slots.push_back(arrays.at(slot.argument).address != 0); break;
      case runtime::SlotKind::Misalignment: c.slots.push_back(0); break;
      case runtime::SlotKind::Computed: c.slots.push_back(evaluate(slot.value, c.slots)); break;
    }
  }
  for (const runtime::Requirement& r : recipe.requirements)
    if (evaluate(r.holds, c.slots) == 0 && c.problem.empty()) c.problem = r.text;
  for (const Array& a : arrays) c.pointers.push_back(a.address);
  for (const runtime::Workspace& w : recipe.workspaces) {
    c.workspace_bytes.push_back(evaluate(w.bytes, c.slots));
    c.workspace_zeroed.push_back(evaluate(w.zeroed_bytes, c.slots));
  }
  return c;
}

inline std::array<unsigned, 3> grid_of(const runtime::Launch& launch, const PlanCall& c) {
  std::array<unsigned, 3> grid = {1, 1, 1};
  for (size_t i = 0; i < launch.grid.size(); ++i)
    grid[i] = static_cast<unsigned>(std::max<int64_t>(0, evaluate(launch.grid[i], c.slots)));
  return grid;
}

inline TensorMap map_of(const runtime::TensorMap& m, const PlanCall& c) {
  constexpr TensorMapType types[] = {TensorMapType::U8,  TensorMapType::U16, TensorMapType::U16, TensorMapType::I32,
                                     TensorMapType::I32, TensorMapType::I32, TensorMapType::F16, TensorMapType::F32,
                                     TensorMapType::F64, TensorMapType::BF16};
  constexpr int sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  TensorMap out;
  out.address = c.pointers.at(m.pointer);
  out.type = types[m.data_type];
  out.element_bytes = sizes[m.data_type];
  out.rank = static_cast<int>(m.extents.size());
  out.stride[0] = static_cast<uint64_t>(out.element_bytes);
  for (size_t i = 0; i < m.extents.size(); ++i) {
    out.extent[i] = static_cast<uint64_t>(evaluate(m.extents[i], c.slots));
    out.box[i] = m.box[i];
    if (i > 0) out.stride[i] = static_cast<uint64_t>(evaluate(m.stride_bytes[i - 1], c.slots));
  }
  out.swizzle = static_cast<Swizzle>(m.swizzle);
  return out;
}

}  // namespace tilewright::device_cases
