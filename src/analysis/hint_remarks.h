// What became of the hints of a kernel, for `--explain`: one line each.
//
// Guarantees: every hint gets a line, followed or not. Does not: follow or refuse one; the planners do.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

enum class TargetFamily : uint8_t { Cpu, Cuda };

struct HintRemark {
  std::string what;  ///< hint instruction = "mma"
  std::string why;
  Location location;
};

std::vector<HintRemark> hint_remarks(const ir::Kernel& kernel, TargetFamily family);

}  // namespace tilewright::analysis
