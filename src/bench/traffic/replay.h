// A trace replayed with kernels that really run: services and compiles are measured, arrivals follow the trace's own
// clock.
//
// One first-come first-served server. A request starts at max(arrival, server free) and takes what its kernel takes,
// here and now; a compile takes what it takes. Waiting for the next arrival is skipped, so an hour of trace costs only
// the work in it. (A compile behind the server is run between requests and booked on a compile thread's clock; its
// contention for cores is not replayed.) Policies:
//   exact|pad…  every new key is compiled: before the request (`block`) or behind it while the fallback serves
//   pinned      only keys of saved buckets; everything else runs the fallback and is logged; nothing is ever compiled
//   adaptive    starts on the general kernel, compiles behind, tries at most 1 % of requests on both kernels (one key
//               after another, the most asked for first), promotes a kernel only on a paired FASTER, goes back when p99
//               exceeds the SLO; writes every step to the telemetry, and falls to pinned at once when it cannot
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/traffic/key_policy.h"
#include "bench/traffic/simulate.h"
#include "bench/traffic/trace.h"

namespace tilewright::traffic {

/// What serves the requests. All times are measured by the implementer and in seconds.
class ReplayOperator {
 public:
  struct Run {
    double seconds = 0;
    std::string output_digest;  ///< of the real rows; equal inputs, so a change is a change of the kernel
  };
  virtual ~ReplayOperator() = default;
  /// Makes the kernel of `key` ready.
  virtual Result<double> compile(int64_t key) = 0;
  /// Runs the kernel of a compiled key on a prompt padded to it.
  virtual Result<Run> run(int64_t key, int64_t prompt) = 0;
  /// Runs the general kernel on the prompt as it is.
  virtual Result<Run> run_fallback(int64_t prompt) = 0;
};

enum class ServingPolicy : uint8_t { Jit, Pinned, Adaptive };

struct ReplayOptions {
  ServingPolicy serving = ServingPolicy::Jit;
  MissHandling handling = MissHandling::Block;
  std::vector<int64_t> pinned_keys;  ///< of verified buckets
  double explore_share = 0.01;
  double slo_s = 0;              ///< adaptive: roll back above this p99; 0 = none
  int pairs = 8;                 ///< before a promotion is considered
  int pricing_rounds = 11;       ///< pairs that price the misses of a key
  double goodput_limit_s = 0.5;  ///< a request counts as good below this latency
  /// Adaptive: writes one event; false when it could not.
  std::function<bool(const std::string& line)> telemetry;
  std::function<void(int64_t done, int64_t total)> progress;
};

struct ReplayReport {
  SimulationResult service;  ///< latencies, misses, steady state; measured, not simulated
  std::string serving;       ///< "jit", "pinned", "adaptive"
  int64_t jit_events = 0;
  double compile_s = 0;
  double goodput = 0;                  ///< share of requests below the limit
  std::optional<double> break_even_s;  ///< when the time saved over the fallback has repaid the compiles
  /// Pinned: median of (fallback − kernel of the key) over paired runs after the service, times the key's misses,
  /// summed; negative when the fallback is the better one. The ends are those of the medians' 95 % intervals.
  double left_on_table_s = 0, left_low_s = 0, left_high_s = 0;
  int64_t fallbacks = 0;
  int64_t switches = 0;
  int64_t unexplained_switches = 0;  ///< switches without a telemetry line: none by construction, and reported
  int64_t rollbacks = 0, explored = 0;
  int64_t distinct_outputs = 0;  ///< most digests seen for one prompt length
  bool fell_to_pinned = false;
};

/// E1647 when the operator fails. `Adaptive` without telemetry is refused by the caller (exit 9).
Result<ReplayReport> replay(const Trace& trace, const KeyPolicy& policy, ReplayOperator& kernels,
                            const ReplayOptions& options);

nlohmann::json to_json(const ReplayReport& report);

}  // namespace tilewright::traffic
