// Is a faster than b? From times taken side by side: ρ = exp(median ln(a/b)), with intervals from the order statistics
// of the ratios (the sign test turned into an interval; Conover, Practical Nonparametric Statistics, §3.4). What
// disturbs both alike cancels.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "measure/order_statistics.h"

namespace tilewright::measure {

enum class Verdict : uint8_t { Faster, Slower, Same, Inconclusive };
std::string_view name(Verdict verdict);  ///< "FASTER", …

struct PairedOptions {
  double delta = 0.02;  ///< differences below this do not matter
};

/// `a` and `b` hold one time per round each; ratio < 1 means a is faster.
struct PairedResult {
  double ratio = 1;
  Interval interval95, interval90;
  int rounds = 0;
  double sigma = 0;  ///< robust standard deviation of ln(a/b): 1.4826·MAD
  Verdict verdict = Verdict::Inconclusive;
};

/// FASTER / SLOWER when the 95 % interval lies wholly beyond [1/(1+δ), 1+δ], SAME when the 90 % interval lies inside,
/// else INCONCLUSIVE. Swapping a and b swaps the verdict. Sizes are equal; fewer than 6 rounds are always INCONCLUSIVE.
PairedResult compare_paired(std::span<const double> a, std::span<const double> b, const PairedOptions& options = {});

/// Rounds after which the 95 % interval should be about ±δ/2 wide when ln(a/b) has this deviation; within [52, 400].
int rounds_needed(double sigma, const PairedOptions& options = {});

/// A candidate against itself: the machine can decide nothing when it calls identical code different, or when the noise
/// leaves an interval wider than ±δ·5.
struct GateResult {
  bool passed = false;
  PairedResult result;
  std::string_view why;  ///< "", "identical code looks different", "too noisy"
};
GateResult judge_identical(std::span<const double> a, std::span<const double> b, const PairedOptions& options = {});

}  // namespace tilewright::measure
