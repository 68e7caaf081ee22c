// Vector-phase IR to a relocatable x86-64 object with the CPU entry ABI of tilewright.h, in process, by LLVM.
//
// Guarantees: the same kernel and options give the same bytes; no global state of LLVM is changed (passes we do not
// want stay out of this kernel's pass manager: code_pipeline.h), so kernels compile on any number of threads. A kernel
// of several long functions is compiled by two threads and joined. The object has one function per Func, no relocation
// outside itself but memcpy, memset and memmove, and line tables that name the
// `.tile` lines.
#pragma once

#include "codegen/backend.h"

namespace tilewright::codegen {

Result<CpuObject> compile_cpu(const ir::Kernel& kernel, const CpuOptions& options);

/// "LLVM 19.1.7 early-cse,simplifycfg …": what must enter a cache key besides the kernel and the options.
std::string cpu_toolchain();

/// Names of the processor and features of this machine, as LLVM sees them.
CpuOptions host_cpu_options();

}  // namespace tilewright::codegen
