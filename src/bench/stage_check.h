// Correctness inside a stage child: the oracle of bench/oracle applied to an opened candidate.
#pragma once

#include "bench/oracle/reference.h"
#include "bench/stage_setup.h"

namespace tilewright::bench {

/// The whole check: fresh inputs in the same buffers, poison, margins, references for the relative rule, fuzz shapes.
/// Fields: "accepted", "reason", "detail".
Result<nlohmann::json> run_check(const StageRequest& request, const candidate::Kinds& kinds, StageChannel& channel);

/// The oracle of one workload on given inputs, asked about one set of outputs after another.
class OutputJudge {
 public:
  OutputJudge(const Workload& workload, std::vector<HostTensor> inputs, const ReferenceOptions& options = {});
  /// Fields: "accepted", "reason", "judgements".
  nlohmann::json judge(const std::vector<HostTensor>& outputs) const;

 private:
  Workload workload_;
  std::vector<HostTensor> inputs_;
  Expected expected_;
  std::vector<ExpectedOutput> declared_;
};

/// The outputs as they stand against the inputs as they stand. Fields: "accepted", "reason", "detail".
Result<nlohmann::json> check_present_outputs(Ready& ready);

}  // namespace tilewright::bench
