// Executes vector-phase kernels: what a CPU plan becomes before LLVM, on the recipe's slots and pointers, with every
// memory access checked. The semantics of the low-level operations are defined here, lane by lane; the code generator
// is tested against it, and a planner can be tested without a compiler.
//
// Functions run in the recipe's order, their blocks one after another (first index fastest). A block's scratch memory
// starts as poison (0xFF bytes: NaN, -1). Does not check races between blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "interp/memory_map.h"
#include "ir/ir.h"

namespace tilewright::interp {

/// What a launch recipe evaluates to for one call.
struct LaunchEnvironment {
  std::vector<int64_t> slots;
  std::vector<Memory> pointers;       ///< tensors, then workspaces
  std::vector<std::string> launches;  ///< symbols in the recipe's order; empty: functions as they stand
};

struct VectorOptions {
  int64_t step_limit = 400'000'000;
};

/// What a run left besides memory.
struct VectorOutcome {
  std::vector<Diagnostic> failed_assertions;
  std::string printed;
  int64_t steps = 0;
};

/// Fails with E1203 (an access outside its memory, with the operation), E1209 (step limit) or E1211.
Result<VectorOutcome> run_vector(const ir::Kernel& kernel, const LaunchEnvironment& environment,
                                 const VectorOptions& options = {});

}  // namespace tilewright::interp
