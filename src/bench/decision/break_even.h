// After how many calls a cost is repaid: N* = cost / (reference − candidate), with an interval by paired bootstrap.
//
// Each resample draws rounds (pairs stay pairs) and compile times, and gives the medians of both sides; they are kept,
// so that the same draws answer every "what if". When the interval of the saving per call includes 0, the upper end of
// N* is `never`. Pure: seed in, numbers out.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tilewright::decision {

/// One resample: medians in ms.
struct Draw {
  double candidate_ms = 0;
  double reference_ms = 0;
  double compile_ms = 0;
};

struct DrawOptions {
  int resamples = 10'000;
  uint64_t seed = 1;
};

/// `candidate` and `reference` are paired when `is_paired` (equal sizes), else drawn apart. `compile` may be empty.
std::vector<Draw> draw_medians(std::span<const double> candidate, std::span<const double> reference, bool is_paired,
                               std::span<const double> compile, const DrawOptions& options = {});

/// A number of calls with its interval; nullopt = never.
struct BreakEven {
  std::optional<double> calls, low, high;
  bool is_never() const { return !low; }  ///< not even the favourable end pays
};

/// What-if factors on the draws; all 1 for the evidence itself.
struct Scale {
  double candidate = 1, reference = 1, compile = 1;
};

/// Cost of one event: compile_count compiles plus `fixed_ms`, in ms of machine time.
struct EventCost {
  double compile_count = 1;
  double fixed_ms = 0;
};

BreakEven break_even(std::span<const Draw> draws, const EventCost& cost, const Scale& scale = {});

/// "41200 [38100, 45900]", "[38100, never]", "never".
std::string to_string(const BreakEven& value);
nlohmann::json to_json(const BreakEven& value);

}  // namespace tilewright::decision
