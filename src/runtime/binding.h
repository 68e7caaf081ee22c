// From the caller's arguments to what a launch reads: slots and pointers, with every check of the recipe on the way.
//
// bind() allocates nothing, takes no lock and calls no system unless it fails; each failure names the argument, what it
// got and what was expected. Sizes are exact: an extent product or a stride sum that leaves 63 bits is `too_large`.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/recipe.h"

namespace tilewright::runtime {

/// The bound values of one call; lives on the caller's stack and is filled as far as the recipe needs.
struct Binding {
  int64_t slots[kMaxSlots];
  void* pointers[kMaxTensors + kMaxWorkspaces];
  /// Bytes [low, high) that each tensor's elements touch; equal when it is empty or absent.
  struct Range {
    uintptr_t low, high;
  };
  Range ranges[kMaxTensors];

  std::span<const int64_t> slot_span(const Recipe& recipe) const { return {slots, recipe.slots.size()}; }
};

/// Fills slots, tensor pointers and ranges; `device` is where the tensors must be. Workspace pointers are set by the
/// plan.
Status bind(const Recipe& recipe, const tw_arguments& arguments, tw_device_kind device, Binding& binding);

/// Fills only the slots, from tensors whose `data` may be null and whose written ones may be missing extents altogether
/// (`extents` null): for asking how large outputs and workspaces will be.
Status bind_shapes(const Recipe& recipe, const tw_arguments& arguments, Binding& binding);

/// Extents of tensor `index`, by its axes, over bound slots.
void tensor_extents(const Recipe& recipe, size_t index, const Binding& binding, int64_t* extents);

}  // namespace tilewright::runtime
