// Any candidate as something to tune: its `config` is the point of the space.
//
// A trial opens the candidate in the tuner's child process, holds it to the contract, checks it with the oracle's rules
// on data of the trial's seed, and times single launches with the tensors flushed from the caches. The runner itself
// opens nothing, so the tuner's process stays free of the candidate's threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/oracle/workload.h"
#include "candidate/kinds.h"
#include "tune/runner.h"

namespace tilewright::bench {

struct CandidateTrialsOptions {
  std::string spelling;  ///< "lib:./gemm.so"
  Workload workload;
  int threads = 1;
  std::string device = "cpu";
  std::string scratch;      ///< folder for the candidate's private caches, one per trial process
  std::string source_file;  ///< whose bytes identify the source; the spelling's file when empty
  std::function<std::optional<std::string>(const tune::Config&)> prune;  ///< why a point is not tried; may be empty
};

class CandidateTrials : public tune::TrialRunner {
 public:
  CandidateTrials(const candidate::Kinds& kinds, CandidateTrialsOptions options);

  ~CandidateTrials() override;  ///< removes the scratch folder

  tune::Identity identity() const override { return identity_; }
  std::optional<std::string> prune(const tune::Config& config) const override {
    return options_.prune ? options_.prune(config) : std::nullopt;
  }
  Result<std::unique_ptr<tune::LoadedTrial>> load(const tune::Config& config) override;

 private:
  const candidate::Kinds& kinds_;
  CandidateTrialsOptions options_;
  tune::Identity identity_;
};

/// The configuration as the JSON object a candidate's `compile` takes.
std::string config_text(const tune::Config& config);

}  // namespace tilewright::bench
