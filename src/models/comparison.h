// A whole model with one operator swapped, against the same model with the library's: paired, in one process.
//
// Order of events: every shape of the swapped operator is prepared and checked by the oracle (a wrong one ends it), the
// tokens of both are compared, both are profiled, and only then are rounds timed: library, library again (the A/A
// gate), swapped, in a random cyclic Latin square. One round = prefill of the prompt and `new_tokens` greedy steps.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "measure/paired.h"
#include "models/decoder.h"
#include "models/swapped_operators.h"
#include "models/timed_operators.h"

namespace tilewright::models {

struct RunShape {
  std::vector<int64_t> prompt;
  int64_t new_tokens = 16;
};
/// `count` tokens drawn from the seed.
std::vector<int64_t> random_prompt(const DecoderConfig& config, int64_t count, uint64_t seed);

/// Times of one round, ms.
struct RoundTime {
  double prefill = 0;
  std::vector<double> steps;  ///< one per new token after the first
  double total = 0;
};
struct TimedRun {
  RoundTime time;
  std::vector<int64_t> tokens;
};
Result<TimedRun> run_once(Decoder& decoder, const RunShape& shape, Operators& operators);

/// Share of the model's time per workload key, largest first.
struct ProfileRow {
  std::string workload;
  int64_t calls = 0;  ///< in one run
  double ms = 0;
  double share = 0;         ///< of the whole run
  double largest_gain = 1;  ///< 1/(1 − share): the model's speed-up if this cost nothing
};
struct Profile {
  std::vector<ProfileRow> rows;
  double total_ms = 0;
  double other_share = 0;  ///< outside the operators: additions, rotary positions, the loop
};
/// Of the run with the median time among `repeats`, after one that warms up.
Result<Profile> profile(Decoder& decoder, const RunShape& shape, Operators& operators, int repeats = 3);
/// Rows of the same operator ("gemm") added up.
std::vector<ProfileRow> by_operator(const Profile& profile);

struct PhaseTimes {
  std::string name;  ///< "prefill", "decode step", "whole"
  double p50_library = 0, p50_swapped = 0;
  std::optional<double> p99_library, p99_swapped;  ///< nothing: percentile-unsupported
  measure::PairedResult paired;                    ///< swapped / library; < 1: the swap is faster
};

struct Comparison {
  std::vector<PhaseTimes> phases;
  measure::GateResult identical;              ///< the library against itself
  std::vector<std::vector<double>> whole_ms;  ///< per round: library, swapped
  bool same_tokens = false;
  std::vector<std::string> taken;
  std::map<std::string, std::string> refused;
  double operator_share = 0;     ///< of the library's time, the shapes taken
  double operator_speedup = 1;   ///< of those shapes, inside the model
  double predicted_speedup = 1;  ///< Amdahl: 1/((1 − f) + f/s)
  double measured_speedup = 1;   ///< 1/ratio of the whole
  Profile library_profile;
};
nlohmann::json to_json(const Comparison& comparison);

struct ComparisonOptions {
  RunShape shape;
  int rounds = 20;
  uint64_t seed = 1;
  std::function<void(int done, int total)> progress;
};
/// E1609 when the swapped operator is wrong; E3201 when it takes no shape of this model.
Result<Comparison> compare_models(Decoder& decoder, Operators& library, const SwapOptions& swap,
                                  const ComparisonOptions& options);

/// A user's program as the model: started once with `sh -c`, it reads lines `a` (as it is) or `b` (operator swapped),
/// runs one forward, and answers `done`. Its first line, before any question, is `ready`. Wall time is taken here. See
/// examples/models/.
struct CommandComparison {
  PhaseTimes whole;
  measure::GateResult identical;
  std::vector<std::vector<double>> whole_ms;
};
Result<CommandComparison> compare_command(const std::string& command, int rounds, uint64_t seed);

}  // namespace tilewright::models
