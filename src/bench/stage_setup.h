// A candidate ready to be launched in this process: opened, agreed on the contract, compiled, its arguments in memory.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/oracle/contract.h"
#include "bench/stage_message.h"
#include "candidate/candidate.h"
#include "candidate/kinds.h"
#include "measure/random.h"

namespace tilewright::bench {

/// The tensors of a contract for one candidate: 64-byte aligned, each between two margins whose bytes must never
/// change, outputs poisoned. Memory is shared with the worker when the candidate is remote.
class ArgumentMemory {
 public:
  static Result<ArgumentMemory> allocate(candidate::Candidate* remote, const Workload& workload);

  void fill(const Workload& workload, const DataSpec& data);
  void poison_outputs();
  /// Changes a few elements of every floating-point input to other values of the same size, so that no launch sees what
  /// the last one saw.
  void perturb_inputs(measure::Random& random);
  bool margins_intact() const;

  const std::vector<candidate::Tensor>& tensors() const { return tensors_; }
  std::vector<HostTensor> copy_inputs() const;
  std::vector<HostTensor> copy_outputs() const;
  std::vector<std::span<const std::byte>> spans() const;

 private:
  std::shared_ptr<std::byte> own_;  ///< of candidates in this process
  std::byte* base_ = nullptr;
  size_t total_ = 0;
  std::vector<candidate::Tensor> tensors_;
  std::vector<size_t> ends_;  ///< offset after each tensor
};

struct Ready {
  candidate::CandidatePtr candidate;
  Workload workload;
  candidate::ContractText contract;
  ArgumentMemory memory;
  std::shared_ptr<std::byte> workspace;
  int64_t workspace_bytes = 0;
  candidate::Compiled compiled;
  double device_init_ms = 0, compile_call_ms = 0;

  Status launch();
};

/// Steps that only need the candidate; `channel` hears of each.
Result<candidate::CandidatePtr> open_candidate(const StageRequest& request, const std::string& spelling,
                                               const candidate::Kinds& kinds, StageChannel& channel);
/// Everything up to the first launch. An unfair echo is E1606.
Result<Ready> make_ready(const StageRequest& request, const std::string& spelling, const candidate::Kinds& kinds,
                         StageChannel& channel);

Result<Workload> requested_workload(const StageRequest& request);
ContractOptions contract_options(const StageRequest& request);

}  // namespace tilewright::bench
