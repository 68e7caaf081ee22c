#include "measure/paired.h"

#include <algorithm>
#include <cmath>

namespace tilewright::measure {
namespace {

constexpr int kMinRounds = 52;
constexpr int kMaxRounds = 400;

Interval exponential(const Interval& log_interval) {
  return {std::exp(log_interval.low), std::exp(log_interval.high), log_interval.level};
}

Verdict judge(const PairedResult& result, double delta) {
  const double low = 1 / (1 + delta), high = 1 + delta;
  if (result.interval95.low > high) return Verdict::Slower;
  if (result.interval95.high < low) return Verdict::Faster;
  if (result.interval90.low >= low && result.interval90.high <= high) return Verdict::Same;
  return Verdict::Inconclusive;
}

double robust_deviation(std::span<const double> sorted_values) {
  const double center = median(sorted_values);
  std::vector<double> distance;
  for (double x : sorted_values) distance.push_back(std::abs(x - center));
  std::sort(distance.begin(), distance.end());
  return 1.4826 * median(distance);
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Faster: return "FASTER";
    case Verdict::Slower: return "SLOWER";
    case Verdict::Same: return "SAME";
    case Verdict::Inconclusive: return "INCONCLUSIVE";
  }
  return "";
}

PairedResult compare_paired(std::span<const double> a, std::span<const double> b, const PairedOptions& options) {
  PairedResult out;
  std::vector<double> logs;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) logs.push_back(std::log(a[i] / b[i]));
  out.rounds = static_cast<int>(logs.size());
  if (logs.empty()) return out;
  std::sort(logs.begin(), logs.end());
  out.ratio = std::exp(median(logs));
  out.sigma = robust_deviation(logs);
  const auto wide = median_interval(logs, 0.95), narrow = median_interval(logs, 0.90);
  if (!wide || !narrow) return out;
  out.interval95 = exponential(*wide);
  out.interval90 = exponential(*narrow);
  out.verdict = judge(out, options.delta);
  return out;
}

int rounds_needed(double sigma, const PairedOptions& options) {
  constexpr double kMedianInefficiency = 1.2533;  // √(π/2): deviation of a median over that of a mean, normal samples
  const double rounds = std::pow(1.96 * kMedianInefficiency * sigma / (options.delta / 2), 2);
  return static_cast<int>(std::clamp(std::ceil(rounds), double{kMinRounds}, double{kMaxRounds}));
}

GateResult judge_identical(std::span<const double> a, std::span<const double> b, const PairedOptions& options) {
  GateResult gate;
  gate.result = compare_paired(a, b, options);
  const bool looks_different = gate.result.verdict == Verdict::Faster || gate.result.verdict == Verdict::Slower;
  const Interval& ci = gate.result.interval95;
  const double limit = 1 + 5 * options.delta;
  const bool is_noisy = ci.level == 0 || ci.high > limit || ci.low < 1 / limit;
  gate.passed = !looks_different && !is_noisy;
  gate.why = looks_different ? "identical code looks different" : is_noisy ? "too noisy" : "";
  return gate;
}

}  // namespace tilewright::measure
