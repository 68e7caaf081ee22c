// The lifecycle of candidates, measured: every stage in the right process, correctness first, each result recorded the
// moment it is there.
//
// Guarantees: no timing is recorded for a result that was not accepted; cold and warm never share a process; what was
// not measured has a cell that says why and how; a run that is killed goes on with `resume`; one writer per folder
// (E3303).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/budget.h"
#include "bench/oracle/arguments.h"
#include "bench/record/cell.h"
#include "bench/roofline.h"

namespace tilewright::bench {

struct BenchOptions {
  std::string executable;               ///< stages run in children of it
  std::vector<std::string> command;     ///< goes into every cell
  std::vector<std::string> candidates;  ///< spellings
  std::vector<std::string>
      references;                     ///< spellings; the fastest framework and the fastest library of them are measured
  bool references_are_named = false;  ///< by the user: then they are tried on kernels' own questions too
  std::vector<Workload> workloads;
  /// Whether this candidate takes part in this workload; empty: everyone does.
  std::function<bool(const std::string&, const Workload&)> is_wanted;
  std::string device = "cpu";
  int threads = 1;
  std::string config = "{}";
  uint64_t seed = 1;
  Budget budget;
  std::filesystem::path out = "out";
  bool resume = false;
  bool show_progress = true;
  int64_t timeout_ms = 120'000;  ///< of one silent step of a child
  /// Measures model_ms of a candidate (its spelling) that passed the check and was timed; empty: not-run.
  std::function<Cell(const CellKey&, const std::string&)> measure_model;
};

/// One candidate or reference on one workload, as it stands after the run.
struct Outcome {
  Subject subject;
  std::string candidate;  ///< its name
  std::string spelling;
  bool is_reference = false;
  std::string version;
  Cost cost;
  std::vector<Cell> cells;  ///< latest of each stage, in life order

  const Cell* find(Stage stage) const;
  /// The measured value, or nothing.
  std::optional<double> value(Stage stage) const;
};

struct BenchReport {
  std::vector<Outcome> outcomes;  ///< by workload, candidates before references
  Roofline roofline;
  std::vector<std::string> notes;  ///< what the user should know: noise, references tried
  std::filesystem::path out;
};

Result<BenchReport> run_bench(const BenchOptions& options);

/// Of what the machine is, as it goes into every cell.
std::string environment_digest(int threads);
/// Writes what the machine is into `out`, once; the digest goes into every cell measured on it.
std::string record_environment(int threads, const std::filesystem::path& out);

}  // namespace tilewright::bench
