#include "tune/runoff.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::tune {

using measure::Verdict;

RunoffResult judge_runoff(const std::vector<Contestant>& contestants, const RunoffOptions& options) {
  RunoffResult result;
  const Contestant& first = contestants.front();
  std::vector<size_t> beating;
  for (size_t i = 0; i < contestants.size(); ++i) {
    const Contestant& contestant = contestants[i];
    RunoffRow row{.point = contestant.point, .median_ms = measure::median(measure::sorted(contestant.samples_ms))};
    row.against_incumbent = measure::compare_paired(contestant.samples_ms, first.samples_ms, options.paired);
    const bool may_lead = !options.first_is_incumbent || (i > 0 && row.against_incumbent.verdict == Verdict::Faster);
    if (may_lead) beating.push_back(i);
    result.rows.push_back(row);
  }
  if (beating.empty()) {
    result.winner = first.point;
    result.incumbent_kept = true;
    result.rows.front().is_tied_with_winner = true;
    result.why =
        fmt::format("no contestant is faster than the incumbent by more than {:.0f} %", 100 * options.paired.delta);
    return result;
  }
  const size_t leader = *std::min_element(beating.begin(), beating.end(), [&](size_t a, size_t b) {
    return result.rows[a].against_incumbent.ratio < result.rows[b].against_incumbent.ratio;
  });
  size_t winner = leader;
  int tied = 0;
  for (const size_t i : beating) {
    const auto against_leader =
        measure::compare_paired(contestants[leader].samples_ms, contestants[i].samples_ms, options.paired);
    const bool is_beaten = i != leader && against_leader.verdict == Verdict::Faster;
    result.rows[i].is_tied_with_winner = !is_beaten;
    if (is_beaten) continue;
    ++tied;
    if (contestants[i].point < contestants[winner].point) winner = i;
  }
  result.winner = contestants[winner].point;
  result.why = tied > 1 ? fmt::format("{} contestants tie within {:.0f} %; the earliest in declared order", tied,
                                      100 * options.paired.delta)
                        : fmt::format("fastest, {:.3f} of the first contestant's time",
                                      result.rows[winner].against_incumbent.ratio);
  return result;
}

}  // namespace tilewright::tune
