// Prints a thread program as PTX. No optimisation: ptxas (nvJitLink, the driver) schedules and allocates; loops are
// kept rolled.
#pragma once

#include <string>

#include "base/diagnostic.h"
#include "ir/thread_program.h"

namespace tilewright::codegen {

struct PtxOptions {
  int architecture = 90;  ///< 80, 86, 89, 90: `sm_<architecture>`, with suffix `a` when the program needs it
};

/// The module text of one kernel. E2551 when the program needs an instruction the architecture lacks.
Result<std::string> emit_ptx(const ir::thread::Program& program, const PtxOptions& options);

}  // namespace tilewright::codegen
