// One measured (or not measured) fact about a candidate, as it is kept for good: a line of cells.jsonl.
//
// Guarantees: to_json and parse_cell are inverse of each other; a cell that is not `measured` or `claimed` never has a
// value; NaN and infinity are never written. Does not: decide, aggregate, or touch files (cell_log.h does).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::bench {

enum class Stage : uint8_t {
#define TW_STAGE(enumerator, metric, unit, words, column) enumerator,
#include "bench/record/stage.def"
#undef TW_STAGE
};

/// One row of stage.def.
struct StageInfo {
  Stage stage;
  std::string_view metric;  ///< "warm_ms"
  std::string_view unit;    ///< "ms"
  std::string_view words;   ///< for people
  bool is_column;           ///< a column of table.csv
};
const StageInfo& info(Stage stage);
std::span<const StageInfo> all_stages();
std::optional<Stage> parse_stage(std::string_view metric);

enum class State : uint8_t { Measured, NotRun, Failed, Claimed };
std::string_view name(State state);  ///< "measured", "not-run", "failed", "claimed"
std::optional<State> parse_state(std::string_view text);

/// What weakens a cell: its inputs changed since, it comes from a simulation, a rule was relaxed, a person declared it.
struct Qualifiers {
  bool stale = false;
  bool simulated = false;
  bool relaxed = false;
  bool declared = false;
  friend bool operator==(const Qualifiers&, const Qualifiers&) = default;
};

struct Interval {
  double low = 0;
  double high = 0;
  double level = 0.95;
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// What is measured: the identity columns of table.csv.
struct Subject {
  std::string shape;   ///< workload key: "gemm:4096x4096x4096:tn"
  std::string dtype;   ///< "f16/f32/f16"
  std::string device;  ///< "cpu:<model>:<n>c"
  friend bool operator==(const Subject&, const Subject&) = default;
  friend auto operator<=>(const Subject&, const Subject&) = default;
};

struct Cell {
  uint64_t seq = 0;  ///< position in its file, from 1; given by CellLog
  Subject subject;
  std::string candidate;
  Stage stage = Stage::Check;
  State state = State::NotRun;
  std::string reason;      ///< of not-run and failed, one word or a phrase: "timer-disagrees", "not tuned"
  std::string how_to_run;  ///< of not-run: the command that would measure it; may be empty
  Qualifiers qualifiers;
  std::optional<double> value;
  std::string unit;
  std::optional<Interval> ci;
  int64_t n = 0;  ///< samples in all processes
  int procs = 0;
  std::string stop_reason;                   ///< "precision", "noise-floor", "timeout", "fixed"
  std::vector<std::vector<double>> samples;  ///< one list per process, unit of `unit`
  std::string contract_digest;
  std::string environment_digest;
  std::vector<std::string> command;
  std::string started_at, ended_at;  ///< UTC, ISO 8601 with milliseconds
  nlohmann::json detail =
      nlohmann::json::object();  ///< what only this stage has: phases, oracle result, counters, clocks, claim source

  friend bool operator==(const Cell&, const Cell&) = default;
};

/// What makes two cells answers to the same question; the later one (higher seq) counts.
struct CellKey {
  Subject subject;
  std::string candidate;
  Stage stage = Stage::Check;
  friend auto operator<=>(const CellKey&, const CellKey&) = default;
};
CellKey key(const Cell& cell);

/// The compile_ms of a library that its vendor compiled: nothing to measure, and nothing to repay.
bool is_precompiled(const Cell& cell);

/// A cell of the stage's unit that was not run, with why and how.
Cell not_run(const CellKey& key, std::string reason, std::string how_to_run = {});
Cell failed(const CellKey& key, std::string reason);

nlohmann::json to_json(const Cell& cell);
/// E1602 names the field that is missing or wrong: so is a measured or claimed number that is negative, in another unit
/// than its stage's, or outside its own samples.
Result<Cell> parse_cell(const nlohmann::json& json);

/// E1603 unless the text is non-empty and has no comma, quote, space or control character (a field of table.csv).
Status check_identity(std::string_view what, std::string_view text);

std::string utc_now();  ///< "2026-01-31T09:30:00.123Z"

}  // namespace tilewright::bench
