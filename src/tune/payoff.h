// What tuning is worth on a given traffic: weights of shapes, times before and after, the cost of the search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::tune {

struct ShapePayoff {
  int64_t key = 0;
  double share = 0;       ///< of requests, 0..1
  double default_ms = 0;  ///< per call, before
  double tuned_ms = 0;    ///< per call, after
};

struct Payoff {
  double covered = 0;  ///< Σ share: how much of the traffic the tuned shapes serve
  double gain_ms = 0;  ///< saved per service call, over the whole traffic (untuned shapes save nothing)
  double default_ms = 0, tuned_ms = 0;     ///< mean per covered call
  std::optional<double> break_even_calls;  ///< nullopt = never
  std::optional<double> break_even_s;      ///< at the traffic's rate, when it is known
};

Payoff weigh(const std::vector<ShapePayoff>& shapes, double tune_ms, double requests_per_s = 0);

/// "pays after 41200 calls (2.1 h at 5.5 a second)" or "never pays".
std::string describe(const Payoff& payoff);

}  // namespace tilewright::tune
