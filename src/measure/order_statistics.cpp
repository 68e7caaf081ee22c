#include "measure/order_statistics.h"

#include <algorithm>
#include <cmath>

namespace tilewright::measure {
namespace {

double log_binomial_term(int64_t k, int64_t n, double p) {
  const double dn = static_cast<double>(n), dk = static_cast<double>(k);
  return std::lgamma(dn + 1) - std::lgamma(dk + 1) - std::lgamma(dn - dk + 1) + dk * std::log(p) +
         (dn - dk) * std::log1p(-p);
}

}  // namespace

double binomial_cdf(int64_t k, int64_t n, double p) {
  if (k < 0) return 0;
  if (k >= n) return 1;
  if (p <= 0) return 1;
  if (p >= 1) return 0;
  const bool sum_upper = static_cast<double>(k) > p * static_cast<double>(n);
  double sum = 0;
  if (sum_upper) {
    for (int64_t i = n; i > k; --i) sum += std::exp(log_binomial_term(i, n, p));
  } else {
    for (int64_t i = 0; i <= k; ++i) sum += std::exp(log_binomial_term(i, n, p));
  }
  return std::clamp(sum_upper ? 1 - sum : sum, 0.0, 1.0);
}

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> out(samples.begin(), samples.end());
  std::sort(out.begin(), out.end());
  return out;
}

double median(std::span<const double> s) {
  const size_t n = s.size();
  return n % 2 == 1 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}

double percentile(std::span<const double> s, double p) {
  const auto rank = static_cast<int64_t>(std::ceil(p * static_cast<double>(s.size()) - 1e-9));
  return s[static_cast<size_t>(std::clamp<int64_t>(rank, 1, static_cast<int64_t>(s.size())) - 1)];
}

std::optional<Interval> median_interval(std::span<const double> s, double level) {
  // [x(k), x(n−k+1)] misses the median with 2·P(Bin(n, ½) ≤ k − 1). The sum starts twelve deviations below the middle,
  // where the terms are too small to matter.
  const auto n = static_cast<int64_t>(s.size());
  const auto first = static_cast<int64_t>(static_cast<double>(n) / 2 - 6 * std::sqrt(static_cast<double>(n)));
  int64_t k = std::max<int64_t>(first, 0);
  double outside = 0;
  while (k + 1 <= n / 2) {
    const double next = outside + 2 * std::exp(log_binomial_term(k, n, 0.5));
    if (next > 1 - level) break;
    outside = next;
    ++k;
  }
  if (k == 0) return std::nullopt;
  return Interval{s[static_cast<size_t>(k - 1)], s[static_cast<size_t>(n - k)], 1 - outside};
}

std::optional<Interval> quantile_interval(std::span<const double> s, double p, double level) {
  const auto n = static_cast<int64_t>(s.size());
  const double tail = (1 - level) / 2;
  int64_t low = 0;  // largest rank with P(Bin < low) ≤ tail: x(low) ≤ quantile
  while (low + 1 <= n && binomial_cdf(low, n, p) <= tail) ++low;
  int64_t high = n + 1;  // smallest rank with P(Bin ≥ high) ≤ tail
  while (high - 1 >= 1 && 1 - binomial_cdf(high - 2, n, p) <= tail) --high;
  if (low < 1 || high > n) return std::nullopt;
  const double covered = binomial_cdf(high - 1, n, p) - binomial_cdf(low - 1, n, p);
  return Interval{s[static_cast<size_t>(low - 1)], s[static_cast<size_t>(high - 1)], covered};
}

double relative_half_width(const Interval& interval, double center) {
  return (interval.high - interval.low) / 2 / std::abs(center);
}

int64_t early_stopping_queries(double p, int64_t over) {
  int64_t low = over, high = over + 1;
  while (binomial_cdf(over, high, 1 - p) > 0.01) low = high, high *= 2;
  while (low + 1 < high) {
    const int64_t middle = (low + high) / 2;
    (binomial_cdf(over, middle, 1 - p) > 0.01 ? low : high) = middle;
  }
  return high;
}

std::optional<double> supported_percentile(std::span<const double> s, double p) {
  const auto n = static_cast<int64_t>(s.size());
  if (n < early_stopping_queries(p, 1)) return std::nullopt;
  int64_t over = 1;
  while (binomial_cdf(over + 1, n, 1 - p) <= 0.01) ++over;
  return s[static_cast<size_t>(n - 1 - over)];
}

double relative_spread(std::span<const double> s) {
  return (percentile(s, 0.75) - percentile(s, 0.25)) / std::max(std::abs(median(s)), 1e-300);
}

int64_t count_outliers(std::span<const double> s) {
  const double q1 = percentile(s, 0.25), q3 = percentile(s, 0.75), far = 3 * (q3 - q1);
  return std::count_if(s.begin(), s.end(), [&](double x) { return x < q1 - far || x > q3 + far; });
}

}  // namespace tilewright::measure
