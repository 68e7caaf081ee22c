// What there is to decide on: the latest cells of one candidate and its rivals, the declared cost, the objective's
// registration. Collecting reads nothing but values; deciding (decide.h) reads nothing but this.
//
// Guarantees: the latest cell of each stage counts, whatever its state: a newer failure overrides an older measurement,
// and a paired ratio older than the candidate's own time is none. A rival is a reference only when the oracle accepted
// it before it was timed; the reference is the fastest of them, also when the objective names a slower one.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/decision/break_even.h"
#include "bench/decision/cost_log.h"
#include "bench/decision/objective.h"
#include "bench/record/cell.h"

namespace tilewright::decision {

/// Samples of the objective's metric, summed up once.
struct Tail {
  int64_t n = 0;
  double median = 0, p99 = 0;
  std::optional<double> p99_upper;  ///< holds with confidence 0.99; nothing: percentile-unsupported
};

/// A rival that is no reference: its result was not accepted, or not the one that was timed.
struct ExcludedRival {
  std::string name, why;
};

struct Evidence {
  bench::Subject subject;
  std::string candidate;
  std::map<bench::Stage, bench::Cell> cells;  ///< of the candidate, latest of each stage
  std::string reference;  ///< fastest rival whose time is evidence, on the objective's metric; empty = none
  std::map<bench::Stage, bench::Cell> reference_cells;
  std::vector<std::pair<std::string, double>> rivals;  ///< every rival whose time is evidence, fastest first
  std::vector<ExcludedRival> excluded;                 ///< rivals with a time that is none, and why
  std::optional<bench::Cell> ratio;                    ///< the paired ratio against `reference`; the candidate's latest
  std::optional<bench::Cell> failed_gate;              ///< the last comparison, when its A/A gate found only noise
  std::string ratio_failure;                           ///< why the latest pairing failed; empty: it did not
  std::string unfair;  ///< "unfair:contract: …": the two sides may not be compared; empty: they may
  std::optional<Tail> tail, reference_tail;  ///< of the metric, where it was measured
  std::vector<Draw> draws;
  bool is_paired = false;
  CostSummary cost;
  std::optional<Registration> registration;
  uint64_t first_measured_seq = 0;  ///< 0: nothing was measured
  int64_t claimed_cells = 0;
  uint64_t last_seq = 0;    ///< of the record: a later cell is news to a decision on this
  size_t cost_entries = 0;  ///< of all candidates
  nlohmann::json replay;    ///< of `traffic replay`, or null
  std::string folder;       ///< of the record, for the commands; empty: the default one

  const bench::Cell* measured(bench::Stage stage) const;  ///< null unless the latest cell is `measured`
  /// What one compile takes: 0 of a library its vendor compiled; nothing when it was not measured.
  std::optional<double> compile_ms() const;
  const bench::Cell* measured_reference(bench::Stage stage) const;
};

struct EvidenceInput {
  std::vector<bench::Cell> cells;
  std::vector<CostEntry> costs;
  std::optional<Registration> registration;
  nlohmann::json replay;
  std::string folder = {};  ///< where the record lies; empty: where the commands look by themselves
  DrawOptions draws;
};

/// E1661 when the objective leaves the shape open and the cells have several.
Result<Evidence> collect(const Objective& objective, const EvidenceInput& input);

/// All samples of a cell in one list.
std::vector<double> flat_samples(const bench::Cell& cell);

/// The oracle accepted the result this check cell is about.
bool is_accepted(const bench::Cell& check);

/// Not measured with the full budget: may reject, never adopt. Whole models, tuning and `compare`
/// have budgets of their own.
bool is_quick(const bench::Cell& cell);

/// The first field in which two measurements differ although they must not, as "contract: aaaa… against bbbb…":
/// contract, environment, threads. Nothing when they may be compared.
std::optional<std::string> unfair_field(const bench::Cell& one, const bench::Cell& other);

}  // namespace tilewright::decision
