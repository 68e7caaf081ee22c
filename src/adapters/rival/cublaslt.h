// cuBLASLt as a rival on a CUDA device, opened with dlopen from a toolkit or a Python package: gemm and gemv in bf16,
// f16 and eight-bit floats (A · Bᵀ only), sums in f32. Of the algorithms its heuristics propose, the first launch times
// each on the arguments and keeps the fastest.
#pragma once

#include "candidate/candidate.h"

namespace tilewright::adapters {

/// `path` of libcublasLt, or empty: the usual places; `python` is asked where its packages lie.
candidate::CandidatePtr make_cublaslt(std::string path, std::string python);

}  // namespace tilewright::adapters
