// Medians and percentiles with confidence intervals that assume nothing about the distribution.
//
// The number of n independent samples below the p-quantile is binomial(n, p), so a pair of order statistics covers the
// quantile with a probability that is a binomial sum (David and Nagaraja, Order Statistics, 3rd ed., §7.1). No clock,
// no I/O, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tilewright::measure {

struct Interval {
  double low = 0;
  double high = 0;
  double level = 0;  ///< the probability actually covered, ≥ the one asked for
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// P(Bin(n, p) ≤ k), exact up to rounding.
double binomial_cdf(int64_t k, int64_t n, double p);

/// Sorted copy; every function below wants sorted samples.
std::vector<double> sorted(std::span<const double> samples);

/// Mean of the two middle samples when their number is even. n ≥ 1.
double median(std::span<const double> sorted_samples);

/// x[⌈p·n⌉], 1-based. n ≥ 1, 0 < p ≤ 1.
double percentile(std::span<const double> sorted_samples, double p);

/// Narrowest symmetric pair of order statistics that covers the median with at least `level`; nothing when n is too
/// small for any (95 % needs 6 samples).
std::optional<Interval> median_interval(std::span<const double> sorted_samples, double level);

/// The same for any quantile (not symmetric in rank: at most (1 − level)/2 is left on each side).
std::optional<Interval> quantile_interval(std::span<const double> sorted_samples, double p, double level);

/// Half of the interval's width relative to `center`.
double relative_half_width(const Interval& interval, double center);

/// The early-stopping bound of MLPerf Inference: the smallest number of queries from which the `p` percentile can be
/// stated when `over` of them were slower than the stated value, with confidence 0.99: least n with P(Bin(n, 1 − p) ≤
/// over) ≤ 0.01.
int64_t early_stopping_queries(double p, int64_t over);

/// An upper estimate of the percentile that holds with confidence 0.99 (at least one sample lies above it), or nothing:
/// `percentile-unsupported`.
std::optional<double> supported_percentile(std::span<const double> sorted_samples, double p);

/// Interquartile range over median: a spread that one outlier cannot move.
double relative_spread(std::span<const double> sorted_samples);

/// Samples outside the quartiles by more than 3 interquartile ranges (Tukey's "far out"). They are counted, never
/// dropped.
int64_t count_outliers(std::span<const double> sorted_samples);

}  // namespace tilewright::measure
