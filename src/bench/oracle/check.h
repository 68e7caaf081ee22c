// The correctness gate in front of every timing: one candidate against the oracle, on the workload itself, on at least
// 25 fuzz shapes, and the oracle itself against planted mistakes.
//
// Per shape: the contract is sent and its digest must come back (else unfair); two runs on the same inputs with
// different poison; canaries, inputs, poison; then the rules of judge.h against R0. Nothing here reads a clock, and
// nothing may be timed before `accepted()`. Integer, zero and special data may be checked but never measured
// (`may_measure`).
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/oracle/contract.h"
#include "bench/oracle/guarded_tensors.h"
#include "bench/oracle/judge.h"
#include "bench/oracle/tile_kernels.h"
#include "candidate/candidate.h"

namespace tilewright::bench {

/// A candidate made ready for one workload.
struct PreparedKernel {
  candidate::Echo echo;
  /// One call, complete on return (a device stream is synchronised).
  std::function<Status(std::span<const candidate::Tensor>)> launch;
  std::shared_ptr<Memory> memory;        ///< null: this process's memory
  std::shared_ptr<const void> lifetime;  ///< whatever must outlive `launch`
};
/// Opens, prepares and compiles the candidate for a workload; E3201 when it does not do this one.
using Prepare = std::function<Result<PreparedKernel>(const Workload&, const candidate::ContractText&)>;
/// The framework's results (R1) for the same inputs, whole outputs; absent: the declared-types evaluation takes its
/// place.
using RunReference = std::function<Result<std::vector<HostTensor>>(const Workload&, const std::vector<HostTensor>&)>;

struct CheckOptions {
  ContractOptions contract;
  ReferenceOptions reference;
  RunReference r1;
  bool fuzz = true;
  bool mutants = true;
  uint64_t fuzz_seed = 1;
  std::string candidate_name = "the candidate";
  std::function<void(const std::string& step, int done, int total)> progress;  ///< may be empty
};

struct ShapeReport {
  enum class State : uint8_t { Accepted, Rejected, Refused, Unfair, Failed };
  std::string key;
  State state = State::Failed;
  std::vector<Finding> findings;      ///< why it was rejected; the refusal or failure in one line
  std::vector<Judgement> judgements;  ///< one per output
  bool bitwise_repeatable = true;
  int64_t checked_rows = 0, rows = 0;  ///< equal unless the oracle sampled
};
std::string_view name(ShapeReport::State state);

struct MutantReport {
  Mutant mutant;
  bool rejected = false;
  std::string by;  ///< rule that noticed it
};

struct CheckReport {
  ShapeReport main;
  std::vector<ShapeReport> fuzz;
  std::vector<MutantReport> mutants;
  std::optional<std::string> unfair;  ///< field
  bool may_measure = true;
  uint64_t fuzz_seed = 0;

  int rejected_shapes() const;
  int refused_shapes() const;  ///< fuzz shapes the candidate says it does not do
  bool oracle_blind() const;   ///< a mutant passed
  /// Right on the workload and on every fuzz shape it takes.
  bool accepted() const;
  /// One line: "accepted, 26 of 26 fuzz shapes, 8 of 8 mutants noticed", or the first finding.
  std::string summary() const;
};
nlohmann::json to_json(const CheckReport& report);

ShapeReport check_shape(const Workload& workload, const Prepare& prepare, const CheckOptions& options);
/// The same on a kernel already prepared (for the check after timing, with a new data seed).
ShapeReport check_prepared(const Workload& workload, const PreparedKernel& kernel, const CheckOptions& options);
CheckReport check_candidate(const Workload& workload, const Prepare& prepare, const CheckOptions& options);

/// Every mutant that applies to this operator, mask and types, on a small ragged shape with the given data.
std::vector<MutantReport> try_mutants(const Workload& workload, const CheckOptions& options);
/// The tile kernel as something to check; `kernel` with a mutant is a planted mistake.
Prepare tile_kernel_candidate(const TileKernel& kernel);

}  // namespace tilewright::bench
