// Target-neutral passes over tile kernels, and the one place that runs them.
//
// A pass is a function from a kernel (tile phase, in place) to whether it changed anything; passes.def lists them in
// the order they run, with the reason for the order. The runner disables, checks and reports; passes do not.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/plant.h"
#include "ir/ir.h"

namespace tilewright::transform {

/// A decision worth telling the author.
struct Note {
  std::string what;
  std::string why;
  Location location;
};

struct PassOptions {
  Plant plant;
  std::vector<std::string> disabled;  ///< names of passes not to run
  bool verify = false;                ///< check the result's structure
};

struct PassContext {
  const PassOptions& options;
  std::vector<Note>& notes;
};

struct PassInfo {
  std::string_view name;
  bool (*run)(ir::Kernel& kernel, PassContext& context);
  std::string_view text;
};
const std::vector<PassInfo>& passes();

/// Runs every pass of passes.def in order. Error E9001 (our bug) when a pass breaks the kernel's structure.
Status run_passes(ir::Kernel& kernel, const PassOptions& options, std::vector<Note>& notes);

}  // namespace tilewright::transform
