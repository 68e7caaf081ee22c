// The numbers references are computed with: float64 exactly, float32 as a careful program would, and float64 with a
// bound of what a program in the declared types may differ by.
//
// A Bounded<24> says: any sensible program that computes this in float32 lies within `error` of `value`, to first order
// (running error analysis, Higham, Accuracy and Stability of Numerical Algorithms, §3.3): every operation passes its
// operands' errors on and adds its own rounding, sums as if in the worst order. Infinite: nothing can be said (a
// comparison nearer than rounding). Private to the reference evaluator.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tilewright::kernels {

template <int kBits>
struct Bounded {
  double value = 0;
  double error = 0;

  static constexpr double kUnit = 1.0 / static_cast<double>(int64_t{1} << kBits);
  Bounded() = default;
  Bounded(double v) : value(v) {}  // NOLINT(google-explicit-constructor): a number is a number without an error
  Bounded(double v, double e) : value(v), error(std::isnan(e) ? std::numeric_limits<double>::infinity() : e) {
    if (!std::isfinite(v)) error = 0;
  }
};

template <typename R>
inline constexpr bool kIsBounded = !std::is_floating_point_v<R>;

inline double value_of(double x) { return x; }
inline double value_of(float x) { return x; }
template <int kBits>
double value_of(const Bounded<kBits>& x) {
  return x.value;
}
inline double error_of(double) { return 0; }
inline double error_of(float) { return 0; }
template <int kBits>
double error_of(const Bounded<kBits>& x) {
  return x.error;
}

/// How much an elementary function may round by: `units` of the result, and `absolute` of the argument (formulas that
/// add large parts to a small result, as x/2·(1 + erf) does).
struct Roundings {
  double units = 4;
  double absolute = 0;
};

template <typename F>
double apply(double x, F f, Roundings = {}) {
  return f(x);
}
template <typename F>
float apply(float x, F f, Roundings = {}) {
  return static_cast<float>(f(static_cast<double>(x)));
}
template <int kBits, typename F>
Bounded<kBits> apply(const Bounded<kBits>& x, F f, Roundings rounding = {}) {
  constexpr double u = Bounded<kBits>::kUnit;
  const double y = f(x.value);
  const double reach = x.error + (rounding.units > 0 ? u * std::fabs(x.value) : 0);
  const double passed_on =
      reach > 0 ? std::max(std::fabs(f(x.value + reach) - y), std::fabs(f(x.value - reach) - y)) : 0;
  return {y, passed_on + u * (rounding.units * std::fabs(y) + rounding.absolute * std::fabs(x.value))};
}

template <int kBits>
Bounded<kBits> operator+(const Bounded<kBits>& a, const Bounded<kBits>& b) {
  const double y = a.value + b.value;
  return {y, a.error + b.error + Bounded<kBits>::kUnit * std::fabs(y)};
}
template <int kBits>
Bounded<kBits> operator-(const Bounded<kBits>& a) {
  return {-a.value, a.error};
}
template <int kBits>
Bounded<kBits> operator-(const Bounded<kBits>& a, const Bounded<kBits>& b) {
  return a + -b;
}
template <int kBits>
Bounded<kBits> operator*(const Bounded<kBits>& a, const Bounded<kBits>& b) {
  const double y = a.value * b.value;
  return {y, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error +
                 Bounded<kBits>::kUnit * std::fabs(y)};
}
template <int kBits>
Bounded<kBits> operator/(const Bounded<kBits>& a, const Bounded<kBits>& b) {
  const double y = a.value / b.value, least = std::fabs(b.value) - b.error;
  if (b.error > 0 && !(least > 0)) return {y, std::numeric_limits<double>::infinity()};
  const double passed_on = b.value == 0 ? 0 : (a.error + std::fabs(y) * b.error) / least;
  return {y, passed_on + 3 * Bounded<kBits>::kUnit * std::fabs(y)};
}

inline double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }
inline double smaller(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b); }
template <typename R>
R largest_of(const R& a, const R& b) {
  if constexpr (kIsBounded<R>) {
    return {larger(a.value, b.value), std::max(a.error, b.error)};
  } else {
    return static_cast<R>(larger(a, b));
  }
}
template <typename R>
R smallest_of(const R& a, const R& b) {
  return -largest_of<R>(-a, -b);
}

/// 1 or 0; nothing is known where the difference is nearer than rounding.
template <typename R, typename F>
R compare(const R& a, const R& b, F f) {
  const double yes = f(value_of(a), value_of(b)) ? 1 : 0;
  if constexpr (kIsBounded<R>) {
    const double reach = a.error + b.error;
    return {yes, reach > 0 && std::fabs(a.value - b.value) <= reach ? std::numeric_limits<double>::infinity() : 0};
  } else {
    return static_cast<R>(yes);
  }
}

/// A sum in an order of the program's choice.
template <typename R>
class Sum {
 public:
  void add(const R& x) {
    if constexpr (kIsBounded<R>) {
      total_.value += x.value;
      total_.error += x.error;
      size_ += std::fabs(x.value);
      ++count_;
    } else {
      total_ = static_cast<R>(total_ + x);
    }
  }
  R get() const {
    if constexpr (kIsBounded<R>) {
      return {total_.value, total_.error + static_cast<double>(std::max<int64_t>(count_ - 1, 0)) * R::kUnit * size_};
    } else {
      return total_;
    }
  }

 private:
  R total_ = 0;
  double size_ = 0;
  int64_t count_ = 0;
};

}  // namespace tilewright::kernels
