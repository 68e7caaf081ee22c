// What a code generator takes and gives, without LLVM: the boundary between the compiler and the module that holds
// LLVM.
//
// `open_backend` loads libtilewright-jit.so (the only binary that links LLVM, its symbols hidden) on first use: beside
// the running program or library, in ../lib, or by the loader's own path. Nothing else in the project may open it.
#pragma once

#include <string>
#include <vector>

#include "base/plant.h"
#include "ir/ir.h"

namespace tilewright::codegen {

struct CpuOptions {
  std::string cpu = "x86-64-v3";      ///< LLVM's name of the processor
  std::vector<std::string> features;  ///< LLVM features beyond the processor's: "+avx512f"
  int vector_bits = 256;              ///< widest vectors LLVM may use
  bool line_tables = true;
  bool want_text = false;  ///< also give the LLVM IR and assembly
  Plant plant = {};        ///< a deliberate mistake for the fuzzer to find: lower_arithmetic:1
};

struct CpuObject {
  std::string object;    ///< ELF bytes
  std::string llvm_ir;   ///< when want_text: after optimisation
  std::string assembly;  ///< when want_text
  double lower_ms = 0;   ///< IR to LLVM IR
  double optimise_ms = 0;
  double emit_ms = 0;
};

/// The functions of the module, by pointer. `abi` guards against a module of another build.
struct Backend {
  int abi = 0;
  Result<CpuObject> (*compile_cpu)(const ir::Kernel& kernel, const CpuOptions& options) = nullptr;
  std::string (*cpu_toolchain)() = nullptr;
  CpuOptions (*host_cpu_options)() = nullptr;
};

inline constexpr int kBackendAbi = 2;

/// The loaded module, opened once per process and never closed. Error E2501 says where it was looked for.
Result<const Backend*> open_backend();

/// The file that open_backend() would load, without loading it; empty when there is none beside this code.
std::string backend_path();

}  // namespace tilewright::codegen
