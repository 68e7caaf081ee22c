#include "bench/decision/break_even.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "measure/random.h"

namespace tilewright::decision {
namespace {

/// Median of a vector that may be reordered.
double median_of(std::vector<double>& values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half), values.end());
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  return 0.5 * (upper + *std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half)));
}

/// Calls repaid per unit of cost; its reciprocal is N*. Not positive: nothing is saved.
double rate(const Draw& draw, const EventCost& cost, const Scale& scale) {
  const double saving = scale.reference * draw.reference_ms - scale.candidate * draw.candidate_ms;
  const double price = cost.compile_count * scale.compile * draw.compile_ms + cost.fixed_ms;
  return price > 0 ? saving / price : saving > 0 ? INFINITY : -INFINITY;
}

std::optional<double> calls_of(double rate) {
  if (!(rate > 0)) return std::nullopt;
  return std::isinf(rate) ? 0 : 1 / rate;
}

}  // namespace

std::vector<Draw> draw_medians(std::span<const double> candidate, std::span<const double> reference, bool is_paired,
                               std::span<const double> compile, const DrawOptions& options) {
  measure::Random random(options.seed);
  std::vector<Draw> draws;
  draws.reserve(static_cast<size_t>(options.resamples));
  std::vector<double> a(candidate.size()), b(reference.size()), c(compile.size());
  for (int i = 0; i < options.resamples; ++i) {
    for (size_t k = 0; k < a.size(); ++k) {
      const size_t at = random.below(a.size());
      a[k] = candidate[at];
      if (!is_paired) continue;
      b[k] = reference[at];
      a[k] = candidate[at] / reference[at];
    }
    if (!is_paired) {
      for (double& value : b) value = reference[random.below(b.size())];
    }
    for (double& value : c) value = compile[random.below(c.size())];
    // Of pairs the median of the ratios counts, as in the comparison itself: what disturbed both of a round cancels.
    const double reference_ms = median_of(b);
    draws.push_back({is_paired ? median_of(a) * reference_ms : median_of(a), reference_ms, median_of(c)});
  }
  return draws;
}

BreakEven break_even(std::span<const Draw> draws, const EventCost& cost, const Scale& scale) {
  if (draws.empty()) return {};
  std::vector<double> rates;
  rates.reserve(draws.size());
  for (const Draw& draw : draws) rates.push_back(rate(draw, cost, scale));
  const auto at = [&](double p) {
    const double rank =
        std::clamp(std::ceil(p * static_cast<double>(rates.size())), 1.0, static_cast<double>(rates.size()));
    const auto nth = rates.begin() + static_cast<ptrdiff_t>(rank) - 1;
    std::nth_element(rates.begin(), nth, rates.end());
    return *nth;
  };
  // A high rate is an early break-even.
  return {calls_of(at(0.5)), calls_of(at(0.975)), calls_of(at(0.025))};
}

std::string to_string(const BreakEven& value) {
  if (value.is_never()) return "never";
  const auto one = [](const std::optional<double>& calls) {
    if (!calls) return std::string("never");
    return *calls < 1e7 ? fmt::format("{:.0f}", std::ceil(*calls)) : fmt::format("{:.3g}", *calls);
  };
  if (!value.high) return fmt::format("[{}, never]", one(value.low));
  return fmt::format("{} [{}, {}]", one(value.calls), one(value.low), one(value.high));
}

nlohmann::json to_json(const BreakEven& value) {
  const auto one = [](const std::optional<double>& calls) {
    return calls ? nlohmann::json(*calls) : nlohmann::json("never");
  };
  return {{"calls", one(value.calls)}, {"ci", {one(value.low), one(value.high)}}};
}

}  // namespace tilewright::decision
