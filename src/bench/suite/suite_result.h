// What a contest of a suite says, as pure functions of its samples: speeds over every rival with intervals, the share
// of the ceiling timed beside each sample, goals met or missed, the geometric mean and the worst row.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/suite/suite.h"
#include "measure/paired.h"

namespace tilewright::bench {

struct Contestant {
  std::string spelling, name, version;
  nlohmann::json libraries;
  std::string refused, wrong;       ///< why it was not timed
  std::vector<double> ms, ceiling;  ///< one per round
  double flops = 0, bytes = 0;

  bool is_timed() const { return !ms.empty(); }
  double median_ms() const;
  measure::Interval interval() const;  ///< of the median; level 0 with too few rounds
  /// Median over the rounds of rate / ceiling beside it, in percent; 0 when nothing was timed beside it.
  double share(CeilingProbe::Kind kind) const;
  double rate(CeilingProbe::Kind kind) const;  ///< GFLOP/s, or GB/s where the ceiling is a copy
};

struct SuiteRow {
  SuiteCase what;
  int threads = 1;
  std::string not_run;  ///< why there is nothing
  std::vector<Contestant> contestants;

  const Contestant& ours() const { return contestants.front(); }
  bool is_timed() const { return not_run.empty() && !contestants.empty() && ours().is_timed(); }
  /// Index of the fastest timed rival, 0 when there is none.
  size_t best_rival() const;
  /// Speed of ours over contestant `i`: ratio > 1 means ours is faster.
  measure::PairedResult speed_over(size_t i) const;
};

enum class Goal : uint8_t { None, Met, Missed, Unknown };
std::string_view name(Goal goal);  ///< "", "met", "missed", "not-run"
Goal speed_goal(const SuiteRow& row);
Goal share_goal(const SuiteRow& row, CeilingProbe::Kind kind);

struct SuiteMean {
  int rows = 0;  ///< counted: timed, against a library
  double speed = 0;
  measure::Interval interval;  ///< bootstrap over the rounds of each row
  const SuiteRow* worst = nullptr;
};
SuiteMean mean_of(const std::vector<SuiteRow>& rows, int threads, uint64_t seed);

std::vector<Contestant> parse_contest(const nlohmann::json& result);
nlohmann::json to_json(const SuiteRow& row, CeilingProbe::Kind kind);

}  // namespace tilewright::bench
