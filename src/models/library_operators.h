// The library's operators: matrix products by OpenBLAS (or BLIS), the rest in plain loops the compiler vectorises. What
// a swapped operator is compared with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/rival/blas.h"
#include "models/operators.h"

namespace tilewright::models {

class LibraryOperators : public Operators {
 public:
  explicit LibraryOperators(std::shared_ptr<const adapters::Blas> blas) : blas_(std::move(blas)) {}

  void gemm(const GemmCall& call) override;
  void attention(const AttentionCall& call) override;
  void norm(const NormCall& call) override;
  void swiglu(const SwigluCall& call) override;

  std::string describe() const { return blas_->name() + " " + blas_->version(); }

 private:
  std::shared_ptr<const adapters::Blas> blas_;
  std::vector<float> scores_;
};

/// Opens OpenBLAS, or BLIS where there is none, with `threads` threads.
Result<std::unique_ptr<LibraryOperators>> open_library_operators(int threads, const std::string& python = "python3");

}  // namespace tilewright::models
