// One tile kernel to an artefact for an NVIDIA GPU: plan, PTX, machine code. Needs no GPU for a named architecture.
//
// Guarantees: the artefact holds a cubin when nvJitLink is there and honours all the program asks for, else PTX for the
// driver to assemble (it does so in either case where registers are reallocated between warpgroups). Spills and
// serialised products are facts with numbers. Does not do: run anything (cuda_call.h).
#pragma once

#include "driver/compile.h"
#include "plan/gpu/plan.h"
#include "target/gpu.h"

namespace tilewright::driver {

struct CudaCompileOptions {
  target::Gpu gpu;
  plan::gpu::Options plan;
  /// A device's driver will load the code: what reallocates registers is left to its assembler. Otherwise plans keep to
  /// what nvJitLink assembles.
  bool for_device = false;
  bool want_stages = false;             ///< tile, thread, ptx and (when there is an assembler) cubin
  bool assembles = true;                ///< false: stop at PTX, for who reads stages before the machine code only
  cache::KernelCache* cache = nullptr;  ///< none: compile always
};

/// The key of the artefact that compile_cuda() would give.
Key128 cuda_compilation_key(const ir::Kernel& tile, const CudaCompileOptions& options);

/// Opens the assembler of this process, so that the first compile does not: a cost of the process, not of a kernel.
/// Where there is none the driver assembles.
void open_assembler();

Result<Compilation> compile_cuda(const ir::Kernel& tile, const CudaCompileOptions& options);

}  // namespace tilewright::driver
