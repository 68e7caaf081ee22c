// The libraries a kernel has to beat, as candidates of this process: OpenBLAS, BLIS, oneDNN on a CPU, cuBLASLt on a
// CUDA device (`rival:cublaslt`, cublaslt.h), opened with dlopen.
//
// Spelled `rival:openblas`, `rival:blis`, `rival:onednn`, each with an optional `@/path/to/library.so`. They take gemm
// and gemv contracts (BLAS: f32 and f64, the epilogue as a pass of its own; oneDNN: f32, bf16, f16 and i8, the epilogue
// fused; attention, attention-blocked: OpenBLAS products with a vectorised softmax), so they can be references (the
// best library, R2) and candidates, interleaved with ours in one process. A library that is not there is E3204 with how
// to install it; a contract one cannot do is E3201. Nothing is linked. OPENBLAS_CORETYPE, which some environments set
// for old builds, is taken out of this process's environment before OpenBLAS is opened; the kernel it picked is part of
// the identity ("OpenBLAS 0.3.34 SAPPHIRERAPIDS").
#pragma once

#include <string>

#include "candidate/kinds.h"

namespace tilewright::adapters {

struct RivalOptions {
  std::string python = "python3";  ///< asked where its packages (scipy-openblas32, onednn) lie
};

Result<candidate::CandidatePtr> make_rival(const std::string& target, const RivalOptions& options);
/// Adds the kind `rival`.
void add_rivals(candidate::Kinds& kinds, const RivalOptions& options = {});

}  // namespace tilewright::adapters
