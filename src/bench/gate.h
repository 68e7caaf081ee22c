// Did anything get worse between two folders of records (two commits, two versions of a library)? A pure function of
// their cells.
#pragma once

#include <optional>
#include <vector>

#include "bench/record/cell.h"

namespace tilewright::bench {

struct GateOptions {
  double delta = 0.02;  ///< for times; memory and sizes use it too
  std::vector<Stage> stages = {Stage::Import, Stage::Compile, Stage::Load, Stage::Warm, Stage::Model, Stage::Peak};
};

enum class Change : uint8_t { Better, Same, Worse, Broken, Missing, NotComparable };
std::string_view name(Change change);

struct GateLine {
  CellKey key;
  Change change = Change::Same;
  std::optional<double> before, after;  ///< nothing: that side has no number
  std::string why;
  uint64_t before_seq = 0, after_seq = 0;
};

struct GateReport {
  std::vector<GateLine> lines;
  bool same_environment = true;
  bool has(Change change) const;
};

/// Worse: the new interval lies above the old one and the value grew by more than δ. Broken: it was right or measured
/// and is now failed. Missing: measured before and not now. NotComparable: either side is a `timeout`, stale or
/// simulated.
GateReport gate_cells(const std::vector<Cell>& before, const std::vector<Cell>& after, const GateOptions& options);

}  // namespace tilewright::bench
