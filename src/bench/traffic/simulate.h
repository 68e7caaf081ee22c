// The service simulator: one FIFO server whose kernels are compiled per key.
//
// Rules (all constants are fields of ServiceModel): service = base + per_token × padded tokens; start = max(arrival,
// server free). `Block`: the first request of a key adds the compile time to its own service. `Background`: one compile
// thread, ready = max(compiler free, start) + compile; until then the key's requests run the fallback, base +
// fallback_factor × per_token × unpadded tokens. A pure function of its arguments; its output is labelled `simulated`
// and never becomes a measurement.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/traffic/key_policy.h"
#include "bench/traffic/trace.h"

namespace tilewright::traffic {

struct ServiceModel {
  double base_s = 0.020;
  double per_token_s = 25e-6;
  double fallback_factor = 1.3;
  double compile_s = 1.2;
};

/// Refuses negative or non-finite constants.
Status check(const ServiceModel& model);

enum class MissHandling : uint8_t { Block, Background };
Result<MissHandling> parse_miss_handling(const std::string& text);
std::string to_string(MissHandling handling);

struct ServedRequest {
  double arrival_s = 0;
  double start_s = 0;
  double finish_s = 0;
  int64_t key = 0;
  bool compiled = false;  ///< this request caused a compile
  bool missed = false;    ///< it waited for a compile (Block) or ran the fallback (Background)
};

struct SimulationResult {
  std::string policy;
  MissHandling handling = MissHandling::Block;
  int64_t requests = 0;
  int64_t keys = 0;
  double compile_load = 0;  ///< ρ_c: total compile time / trace span
  double pad_waste = 0;     ///< 1 − Σ real / Σ padded
  double p50_s = 0, p99_s = 0;
  std::optional<double> warmup_p99_s, steady_p99_s;  ///< before and after `steady_at_s`, where there are requests
  std::optional<double> steady_at_s;
  double fallback_share = 0;
  std::vector<double> miss_rate_per_500;
  std::vector<ServedRequest> timeline;
};

SimulationResult simulate(const Trace& trace, const KeyPolicy& policy, MissHandling handling,
                          const ServiceModel& model);

/// Fills latencies, misses and steady state from the timeline.
void summarise_service(SimulationResult& result);

/// The result without its timeline, `"state":"simulated"`.
nlohmann::json to_json(const SimulationResult& result, const ServiceModel& model);

/// At most `limit` requests for plots, every compile and the slowest of each stretch kept: [arrival_s, latency_s,
/// kind], kind 0 served warm, 1 missed, 2 compiled.
nlohmann::json sampled_timeline(const SimulationResult& result, size_t limit = 1500);

}  // namespace tilewright::traffic
