// What there is to decide on: the latest cells of one candidate and its rivals, the declared cost, the objective's
// registration. Collecting reads nothing but values; deciding (decide.h) reads nothing but this.
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

struct Evidence {
  bench::Subject subject;
  std::string candidate;
  std::map<bench::Stage, bench::Cell> cells;  ///< of the candidate, latest of each stage
  std::string reference;                      ///< fastest measured rival on the objective's metric; empty = none
  std::map<bench::Stage, bench::Cell> reference_cells;
  std::vector<std::pair<std::string, double>> rivals;  ///< every rival with a value, fastest first
  std::optional<bench::Cell> ratio;                    ///< the paired ratio against `reference`
  std::optional<bench::Cell> failed_gate;              ///< the last comparison, when its A/A gate found only noise
  std::optional<Tail> tail, reference_tail;            ///< of the metric, where it was measured
  std::vector<Draw> draws;
  bool is_paired = false;
  CostSummary cost;
  std::optional<Registration> registration;
  uint64_t first_measured_seq = 0;  ///< 0: nothing was measured
  int64_t claimed_cells = 0;
  nlohmann::json replay;  ///< of `traffic replay`, or null
  std::string folder;     ///< of the record, for the commands that add to it; empty: the default

  const bench::Cell* measured(bench::Stage stage) const;  ///< null unless the latest cell is `measured`
  const bench::Cell* measured_reference(bench::Stage stage) const;
};

struct EvidenceInput {
  std::vector<bench::Cell> cells;
  std::vector<CostEntry> costs;
  std::optional<Registration> registration;
  nlohmann::json replay;
  std::string folder;
  DrawOptions draws;
};

/// E1661 when the objective leaves the shape open and the cells have several.
Result<Evidence> collect(const Objective& objective, const EvidenceInput& input);

/// All samples of a cell in one list.
std::vector<double> flat_samples(const bench::Cell& cell);

/// Measured in a hurry: may reject, never adopt.
bool is_quick(const bench::Cell& cell);

}  // namespace tilewright::decision
