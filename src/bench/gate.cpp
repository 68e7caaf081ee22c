#include "bench/gate.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "bench/record/cell_log.h"

namespace tilewright::bench {
namespace {

std::map<CellKey, Cell> by_key(const std::vector<Cell>& cells) {
  std::map<CellKey, Cell> out;
  for (const Cell& cell : latest_cells(cells)) out[key(cell)] = cell;
  return out;
}

bool is_firm(const Cell& cell) {
  return cell.state == State::Measured && cell.value && cell.stop_reason != "timeout" && !cell.qualifiers.stale &&
         !cell.qualifiers.simulated;
}

Change compare_values(const Cell& before, const Cell& after, double delta) {
  const Interval old_ci = before.ci.value_or(Interval{*before.value, *before.value});
  const Interval new_ci = after.ci.value_or(Interval{*after.value, *after.value});
  if (*after.value > *before.value * (1 + delta) && new_ci.low > old_ci.high) return Change::Worse;
  if (*after.value * (1 + delta) < *before.value && new_ci.high < old_ci.low) return Change::Better;
  return Change::Same;
}

GateLine judge(const Cell& before, const Cell* after, double delta) {
  GateLine line{key(before), Change::Same, before.value, std::nullopt, "", before.seq, 0};
  if (after == nullptr) {
    line.change = Change::Missing;
    line.why = "measured before, absent now";
    return line;
  }
  line.after = after->value;
  line.after_seq = after->seq;
  if (after->state == State::Failed) {
    line.change = Change::Broken;
    line.why = after->reason;
  } else if (after->state != State::Measured) {
    line.change = Change::Missing;
    line.why = after->reason;
  } else if (before.stage != Stage::Check && (!is_firm(before) || !is_firm(*after))) {
    line.change = Change::NotComparable;
    line.why = "a timeout, stale or simulated cell decides nothing";
  } else if (before.stage != Stage::Check) {
    line.change = compare_values(before, *after, delta);
  }
  return line;
}

}  // namespace

std::string_view name(Change change) {
  switch (change) {
    case Change::Better: return "better";
    case Change::Same: return "same";
    case Change::Worse: return "WORSE";
    case Change::Broken: return "BROKEN";
    case Change::Missing: return "missing";
    case Change::NotComparable: return "not comparable";
  }
  return "";
}

bool GateReport::has(Change change) const {
  return std::ranges::any_of(lines, [change](const GateLine& line) { return line.change == change; });
}

GateReport gate_cells(const std::vector<Cell>& before, const std::vector<Cell>& after, const GateOptions& options) {
  GateReport report;
  const std::map<CellKey, Cell> now = by_key(after);
  for (const auto& [cell_key, cell] : by_key(before)) {
    const bool is_watched =
        cell.stage == Stage::Check || std::ranges::find(options.stages, cell.stage) != options.stages.end();
    if (!is_watched || cell.state != State::Measured) continue;
    const auto found = now.find(cell_key);
    report.lines.push_back(judge(cell, found == now.end() ? nullptr : &found->second, options.delta));
    if (found != now.end() && found->second.environment_digest != cell.environment_digest)
      report.same_environment = false;
  }
  return report;
}

}  // namespace tilewright::bench
