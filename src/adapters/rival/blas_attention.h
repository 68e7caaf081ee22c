// Attention as people write it without a fused kernel: two products by OpenBLAS and a softmax between them, vectorised
// and spread over the threads, one head (or one block of query rows of a head) per task.
#pragma once

#include <string>

#include "candidate/candidate.h"

namespace tilewright::adapters {

struct BlasAttentionOptions {
  std::string name;           ///< of the candidate: "blas-attention"
  int64_t rows_per_task = 0;  ///< query rows whose scores are held at once; 0: all of a head
  std::string path;           ///< of OpenBLAS; empty: the newest found
  std::string python = "python3";
};

/// Takes f32 contracts of either layout, grouped heads, and the masks none, causal-br and causal-tl; else E3201.
candidate::CandidatePtr make_blas_attention(BlasAttentionOptions options);

/// Of `count` scores: s[j] = 2^((s[j] − max) · scale), their sum returned; max 0 when there is nothing but −inf.
/// Relative error of each under 3e-7.
float exponentiate(float* s, int64_t count, float scale);

}  // namespace tilewright::adapters
