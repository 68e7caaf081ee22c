// Operators of which one kind ("gemm", "attn", "rmsnorm", "layernorm", "swiglu") goes to a candidate and the rest to
// the library.
//
// A candidate is opened, prepared, compiled and checked against the oracle once per shape, at the shape's first call
// (the warm-up); later calls only launch. What it refuses (E3201) falls back to the library and is counted, so a run
// can say how much of the operator was really swapped. A wrong result stops everything: `status()` is E1609 with the
// finding.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "candidate/candidate.h"
#include "models/operators.h"

namespace tilewright::models {

struct SwapOptions {
  std::string operation;                                  ///< "gemm", …
  std::function<Result<candidate::CandidatePtr>()> make;  ///< a fresh candidate
  candidate::OpenOptions open;
  bool check = true;  ///< by the oracle, per shape
};

class SwappedOperators : public Operators {
 public:
  SwappedOperators(Operators& base, SwapOptions options) : base_(base), options_(std::move(options)) {}

  void gemm(const GemmCall& call) override;
  void attention(const AttentionCall& call) override;
  void norm(const NormCall& call) override;
  void swiglu(const SwigluCall& call) override;
  Status status() const override { return status_; }

  /// Workload keys that the candidate took, and those it refused with why.
  std::vector<std::string> taken() const;
  const std::map<std::string, std::string>& refused() const { return refused_; }

 private:
  struct Kernel {
    candidate::CandidatePtr candidate;
    std::vector<candidate::Tensor> tensors;  // of the contract; only `data` changes per call
    std::vector<std::byte> workspace;
  };

  bool handles(const char* operation) const { return options_.operation == operation; }
  /// True when the candidate computed it.
  bool launch(const std::string& key, std::initializer_list<const void*> data);
  Kernel* kernel_for(const std::string& key);
  Result<Kernel> build(const std::string& key) const;

  Operators& base_;
  SwapOptions options_;
  std::map<std::string, Kernel, std::less<>> kernels_;
  std::map<std::string, std::string> refused_;
  Status status_;
};

}  // namespace tilewright::models
