// From a tile kernel to everything a CPU needs to run it: low-level functions, a launch recipe, and the reasons.
//
// Guarantees: any valid tile kernel is planned (extents, alignments and dtypes do not matter), or the Diagnostic is an
// E2xxx with numbers; the result is a pure function of kernel, target and options; no access leaves its buffer. Every
// choice (what is packed, register tiles, lanes, guards) is one Fact. Does not do: LLVM, timing, tuning.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/plant.h"
#include "ir/ir.h"
#include "runtime/recipe.h"
#include "target/cpu.h"

namespace tilewright::plan::cpu {

/// One decision, for `--explain`: "gemm B operand", "packed once and shared: read by 8 row blocks, …".
struct Fact {
  std::string what;
  std::string why;
  Location location;
};

struct Options {
  Plant plant;
  bool fuse = true;           ///< run the target-neutral passes: forward copies into gemm, join k-steps
  bool micro_kernels = true;  ///< gemm by register tiles
  bool share_panels = true;   ///< pack operands once, in a launch of their own
  bool verify = false;        ///< check the structure of both kernels (tests)
  std::vector<std::string> disabled_passes;
};

struct CpuPlan {
  ir::Kernel planned;  ///< tile operations after target-neutral rewriting, for `emit --stage planned`
  ir::Kernel vector;   ///< one Func per launch, in the recipe's order
  runtime::Recipe recipe;
  std::vector<Fact> facts;
};

Result<CpuPlan> plan(const ir::Kernel& tile, const target::Cpu& cpu, const Options& options = {});

}  // namespace tilewright::plan::cpu
