// The recipe of C[M, N] = A[M, K] · B[K, N] with a scalar and a `where`, as several tests use it.
#pragma once

#include "runtime/recipe.h"

namespace tilewright::runtime {

/// Slots: 0 M, 1 K, 2 N, 3/4 strides of A, 5/6 of B, 7/8 of C, 9 scale, 10 ceildiv(M, block).
inline Recipe matmul_recipe(int64_t block = 16) {
  Recipe recipe;
  recipe.kernel = "matmul";
  recipe.target = "cpu:x86-64-v3";
  recipe.tensors = {
      {.name = "A", .dtype = TW_F32, .axes = {{.binds = 0, .text = "M"}, {.binds = 1, .text = "K"}}},
      {.name = "B", .dtype = TW_F32, .axes = {{.extent = slot(1), .text = "K"}, {.binds = 2, .text = "N"}}},
      {.name = "C",
       .dtype = TW_F32,
       .access = Access::Out,
       .axes = {{.extent = slot(0), .text = "M"}, {.extent = slot(2), .text = "N"}}},
  };
  recipe.scalars = {{.name = "scale", .dtype = TW_F32, .has_default = true, .default_bits = 0x3f800000}};
  recipe.slots = {
      {.kind = SlotKind::Dim, .argument = 0, .axis = 0, .name = "M"},
      {.kind = SlotKind::Dim, .argument = 0, .axis = 1, .name = "K"},
      {.kind = SlotKind::Dim, .argument = 1, .axis = 1, .name = "N"},
  };
  for (uint32_t tensor = 0; tensor < 3; ++tensor) {
    for (uint32_t axis = 0; axis < 2; ++axis) {
      recipe.slots.push_back({.kind = SlotKind::Stride, .argument = tensor, .axis = axis});
    }
  }
  recipe.slots.push_back({.kind = SlotKind::Scalar, .argument = 0, .name = "scale"});
  recipe.slots.push_back({.kind = SlotKind::Computed, .value = ceil_div(slot(0), constant(block))});
  recipe.requirements = {{.holds = combine(ExpressionOp::Ge, {slot(1), constant(0)}), .text = "K >= 0"}};
  recipe.workspaces = {
      {.name = "panels", .bytes = combine(ExpressionOp::Mul, {slot(1), constant(64)}), .zeroed_bytes = constant(8)}};
  recipe.launches = {{.symbol = "matmul", .grid = {slot(10)}, .scratch_bytes = constant(128)}};
  recipe.messages = {{.id = 1, .text = "k > 0", .location = "matmul.tile:3:5"}};
  return recipe;
}

}  // namespace tilewright::runtime
