// Which index expressions of a kernel depend on data.
//
// Dimensions are guarded by the recipe and loop variables lie below them, so both fit 32-bit arithmetic. A number that
// was loaded or computed does not promise that: 2^32 + 5 must not become 5. Guarantees: every index of every operation
// is looked at. Does not: bound the numbers.
#pragma once

#include <set>

#include "ir/ir.h"

namespace tilewright::plan::gpu {

struct DataIndices {
  const ir::Value* computed = nullptr;  ///< a result of an operation that some index depends on; null: none
  std::set<const ir::Value*> scalars;   ///< scalar arguments that some index depends on
};

DataIndices data_indices(const ir::Kernel& tile);

}  // namespace tilewright::plan::gpu
