// Prints a thread program as PTX. No optimisation: ptxas (nvJitLink, the driver) schedules and allocates; loops are
// kept rolled.
#pragma once

#include <span>
#include <string>

#include "base/diagnostic.h"
#include "ir/thread_program.h"

namespace tilewright::codegen {

struct PtxOptions {
  int architecture = 90;  ///< 80, 86, 89, 90: `sm_<architecture>`, with suffix `a` when the program needs it
};

/// One module with an entry per program. E2551 when the program needs an instruction the architecture lacks.
Result<std::string> emit_ptx(std::span<const ir::thread::Program> programs, const PtxOptions& options);
Result<std::string> emit_ptx(const ir::thread::Program& program, const PtxOptions& options);

}  // namespace tilewright::codegen
