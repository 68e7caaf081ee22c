// Which index expressions of a kernel 32-bit arithmetic does not take.
//
// Dimensions are guarded by the recipe and loop variables lie below them, so both fit. A number that was loaded or
// computed does not promise that: 2^32 + 5 must not become 5; nor does a product of two dimensions, or one with a large
// constant (a hash). Guarantees: every index of every operation is looked at, and every step of it. Does not: bound
// computed numbers; sums of more than eight extents at the limit of the guards.
#pragma once

#include <set>

#include "ir/ir.h"

namespace tilewright::plan::gpu {

struct DataIndices {
  const ir::Value* computed = nullptr;  ///< a result of an operation that some index depends on; null: none
  std::set<const ir::Value*> scalars;   ///< scalar arguments that some index depends on
  const ir::Op* large = nullptr;        ///< has an index with a step that may leave 32 bits; null: none
};

DataIndices data_indices(const ir::Kernel& tile);

}  // namespace tilewright::plan::gpu
