// Which shapes repay a compile: per key, what compiling it saves over the fallback on this trace.
//
// One request's gain = per_token × (fallback_factor × unpadded − padded); a key pays when the gains of all its requests
// exceed one compile. Also the trace's own statistics (`traffic stats`) and its snapshot of weighted shapes, the file
// that `tune --traffic` and `buckets=FILE` read.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/traffic/key_policy.h"
#include "bench/traffic/simulate.h"
#include "bench/traffic/trace.h"

namespace tilewright::traffic {

struct KeyUse {
  int64_t key = 0;
  int64_t count = 0;
  double first_s = 0;     ///< arrival of its first request
  double share = 0;       ///< of all requests
  double cumulative = 0;  ///< share of this key and all first used before it
  double gain_s = 0;      ///< Σ gain of its requests, before paying for the compile
  bool worth_jit = false;
  std::optional<double> break_even_calls;  ///< compile / mean gain; nullopt when the mean gain is not positive
};

struct RareReport {
  std::string policy;
  std::vector<KeyUse> keys;  ///< in order of first use
  int64_t requests = 0;
  int64_t singletons = 0;
  int64_t never_pay = 0;
  double never_pay_requests = 0;  ///< share of requests whose key never pays
  double net_all_s = 0;           ///< Σ (gain − compile) over every key
  double net_chosen_s = 0;        ///< the same over the keys that pay
};

RareReport find_rare_keys(const Trace& trace, const KeyPolicy& policy, const ServiceModel& model);
nlohmann::json to_json(const RareReport& report, const ServiceModel& model);

struct TraceStats {
  int64_t requests = 0, out_of_order = 0;
  double span_s = 0, rate_per_s = 0;
  double gap_cv = 0;  ///< coefficient of variation of the gaps between arrivals (1 = Poisson)
  int64_t prompt_min = 0, prompt_p50 = 0, prompt_p90 = 0, prompt_p99 = 0, prompt_max = 0;
  int64_t output_p50 = 0, output_p99 = 0;
  int64_t distinct_prompts = 0, singleton_prompts = 0;
  double top10_share = 0;  ///< share of requests of the ten most frequent prompt lengths
};

TraceStats describe(const Trace& trace);
nlohmann::json to_json(const TraceStats& stats);

/// {"kind":"traffic-snapshot", trace digest, policy, span, keys with count and share}, most frequent key first.
nlohmann::json snapshot(const Trace& trace, const KeyPolicy& policy);

}  // namespace tilewright::traffic
