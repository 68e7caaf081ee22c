// From a tile kernel to everything a CUDA device needs to run it: thread programs, a launch recipe, and the reasons.
//
// Guarantees: a pure function of kernel, target and options; accesses stay inside their buffers; every choice is one
// Fact. A construct with no lowering is an E2101 that names it. Does not do: PTX, assembling, timing, tuning.
//
// Parameters of a generated kernel, in this order: one pointer per tensor and then per workspace (0 when an optional
// tensor is absent), when the recipe has messages the address of the report buffer and the first message's id
// (runtime/report_layout.h), one 64-bit integer per slot of the recipe, one tensor map per entry of the launch's
// `tensor_maps`.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/plant.h"
#include "ir/ir.h"
#include "ir/thread_program.h"
#include "plan/gpu/buffer_layout.h"
#include "runtime/recipe.h"
#include "target/gpu.h"

namespace tilewright::plan::gpu {

/// One decision, for `--explain`.
struct Fact {
  std::string what;
  std::string why;
  Location location;
};

/// Extents up to here keep 32-bit index arithmetic, a tile beyond the edge included, from overflowing.
inline constexpr int64_t kLargestExtent = int64_t{1} << 30;

struct Options {
  Plant plant;
  bool tensor_cores = true;  ///< mma.sync and wgmma
  bool hopper = true;        ///< the copy engine, wgmma and roles, where the target has them
  bool async_copies = true;  ///< cp.async
  /// Hopper: a product with its left operand in registers runs under the next iteration's arithmetic. Needs the driver
  /// as assembler.
  bool overlap_products = true;
  int cluster = 0;  ///< blocks that share a row held in registers; 0: chosen where one block would hold too much
  /// Blocks that walk over the rows of a grid, the next row on its way while one is worked on. 0: a block
  /// a row; -1: chosen.
  int row_walkers = -1;
  bool wide_indices = false;  ///< for tensors with an extent above kLargestExtent: index arithmetic in 64 bits
  bool aligned = true;  ///< base addresses and pitches are multiples of 16 bytes (a class of its own in the recipe)
};

struct GpuPlan {
  std::vector<ir::thread::Program> programs;  ///< one per launch, in the recipe's order
  runtime::Recipe recipe;
  std::vector<Fact> facts;
  std::vector<BufferLayout> layouts;  ///< of every tile, in the order of the kernel
  bool wide_indices = false;
};

Result<GpuPlan> plan(const ir::Kernel& tile, const target::Gpu& gpu, const Options& options = {});

}  // namespace tilewright::plan::gpu
