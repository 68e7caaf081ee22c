// The part of a contract the rivals understand: products of dense matrices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/dtype.h"
#include "candidate/candidate.h"

namespace tilewright::adapters {

enum class Activation : uint8_t { None, Relu, Gelu, Silu };

/// C[b] = act(op(A[b]) · op(B[b]) + bias); row-major storage, `transpose_x` when stored transposed. gemv has n = 1.
struct Product {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType in = DType::F32, acc = DType::F32, out = DType::F32;
  bool bias = false;
  Activation activation = Activation::None;
};

/// E3204 for a device: `who` reads the memory of this process.
Status needs_cpu(const candidate::OpenOptions& options, const std::string& who);

/// E3201 when the contract is anything else.
Result<Product> parse_product(const candidate::ContractText& contract, const std::string& who);

/// act(x + bias) over rows of `n` values, in place: the pass that libraries without epilogues need. `bias` may be null.
void apply_epilogue(Activation activation, const float* bias, float* c, int64_t rows, int64_t n);
void apply_epilogue(Activation activation, const double* bias, double* c, int64_t rows, int64_t n);

}  // namespace tilewright::adapters
