#include "bench/oracle/judge_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/narrow_float.h"
#include "bench/oracle/arguments.h"

namespace tilewright::bench {
namespace {

constexpr int64_t kEnoughForRelative = 1000;
constexpr double kMostUndecided = 0.1, kVacuousAbove = 0.1;

struct Norms {
  double largest = 0, squares = 0;
  int64_t count = 0;
  void add(double x) {
    largest = std::max(largest, x);
    squares += x * x;
    ++count;
  }
  double rms() const { return count ? std::sqrt(squares / static_cast<double>(count)) : 0; }
};

class ExpressionJudge {
 public:
  explicit ExpressionJudge(const JudgeInput& input) : in_(input), expected_(input.expected.outputs[input.output]) {
    size_t next = 0;
    for (const Argument& arg : arguments(in_.workload)) {
      if (arg.is_output() && next++ == in_.output) out_ = arg.dtype;
    }
    u_out_ = is_float(out_) ? unit_roundoff(out_) : 0;
    u_acc_ = is_float(in_.workload.dtypes.acc) ? unit_roundoff(in_.workload.dtypes.acc) : 0;
    for (size_t i = 0; i < count(); ++i) {
      if (is_decided(i) && std::isfinite(wanted(i))) size_.add(std::fabs(wanted(i)));
    }
  }

  Judgement judge() {
    verdict_.values = static_cast<int64_t>(count());
    verdict_.absolute_applies = true;
    verdict_.absolute_is_vacuous = is_float(out_) && is_vacuous();
    find_undecided();
    find_wrong_values();
    if (is_float(out_)) apply_relative_rule();
    return std::move(verdict_);
  }

 private:
  size_t count() const { return in_.produced.size(); }
  bool is_decided(size_t i) const { return std::isfinite(expected_.bound[i]); }
  bool saturates() const { return narrow_format(out_) && narrow_format(out_)->saturates; }
  double wanted(size_t i) const {
    const double value = expected_.values[i];
    if (!is_float(out_)) return std::nearbyint(value);
    return saturates() && std::fabs(value) > largest_finite(out_) ? std::copysign(largest_finite(out_), value) : value;
  }
  double smallest_half_step() const {
    if (const NarrowFormat* format = narrow_format(out_))
      return std::ldexp(1.0, -format->bias() - format->mantissa_bits);
    return out_ == DType::F32 ? 0x1p-150 : 0x1p-1074;
  }
  double allowed(size_t i) const {
    if (!is_float(out_)) return std::floor(expected_.bound[i] + 0.5 * (expected_.bound[i] > 0));
    const double bound = 2 * expected_.bound[i], y = std::fabs(wanted(i));
    return bound + 16 * u_acc_ * (y + size_.rms()) + u_out_ * (y + bound) + smallest_half_step();
  }
  std::string place(size_t i) const {
    const auto width = static_cast<size_t>(std::max<int64_t>(expected_.row_width, 1));
    const int64_t row = expected_.rows.empty() ? static_cast<int64_t>(i / width) : expected_.rows[i / width];
    return fmt::format("row {} column {}", row, i % width);
  }

  bool is_vacuous() const {
    std::vector<double> bounds;
    for (size_t i = 0; i < count(); ++i) {
      if (is_decided(i)) bounds.push_back(expected_.bound[i]);
    }
    if (bounds.empty()) return false;
    std::ranges::nth_element(bounds, bounds.begin() + static_cast<std::ptrdiff_t>(bounds.size() / 2));
    return bounds[bounds.size() / 2] > kVacuousAbove * size_.rms();
  }

  void find_undecided() {
    int64_t undecided = 0;
    for (size_t i = 0; i < count(); ++i) undecided += !is_decided(i);
    if (static_cast<double>(undecided) <= kMostUndecided * static_cast<double>(count())) return;
    verdict_.findings.push_back(
        {"undecided", fmt::format("{} of {} values hang on a comparison nearer than rounding, so the reference cannot "
                                  "judge them",
                                  undecided, count())});
  }

  /// Right as it is: equal, both NaN, or the same side of the overflow threshold.
  bool is_right(size_t i) const {
    const double got = in_.produced[i], want = wanted(i);
    if (got == want || (std::isnan(got) && std::isnan(want))) return true;
    if (std::isnan(got) || std::isnan(want)) return false;
    const double threshold = is_float(out_) ? largest_finite(out_) * (1 + u_out_ / 2) : 0;
    if (std::isinf(got) || std::isinf(want)) {
      const bool near = is_float(out_) && std::fabs(want) + allowed(i) >= threshold &&
                        std::fabs(got) + allowed(i) >= threshold && std::signbit(got) == std::signbit(want);
      return near;
    }
    return std::fabs(got - want) <= allowed(i);
  }

  void find_wrong_values() {
    int64_t wrong = 0;
    size_t first = 0;
    for (size_t i = 0; i < count(); ++i) {
      if (!is_decided(i)) continue;
      const double error = std::fabs(in_.produced[i] - wanted(i)), most = allowed(i);
      if (std::isfinite(error) && most > 0)
        verdict_.worst_of_absolute = std::max(verdict_.worst_of_absolute, error / most);
      if (!is_right(i) && wrong++ == 0) first = i;
    }
    if (wrong == 0) return;
    verdict_.mismatches = wrong;
    const bool is_pattern = !std::isfinite(in_.produced[first]) || !std::isfinite(wanted(first));
    verdict_.findings.push_back(
        {!is_float(out_) ? "exact"
         : is_pattern    ? "pattern"
                         : "absolute",
         fmt::format("{} of {} values differ from the reference expression, first at {}: got {:.9g}, expected {:.9g}, "
                     "allowed ±{:.3g}",
                     wrong, count(), place(first), in_.produced[first], wanted(first), allowed(first))});
  }

  void apply_relative_rule() {
    Norms own, declared;
    for (size_t i = 0; i < count(); ++i) {
      if (!is_decided(i) || !std::isfinite(wanted(i))) continue;
      if (std::isfinite(in_.produced[i])) own.add(std::fabs(in_.produced[i] - wanted(i)));
      if (i < in_.r1.size() && std::isfinite(in_.r1[i])) declared.add(std::fabs(in_.r1[i] - wanted(i)));
    }
    const double unit = 4 * std::max(u_acc_, u_out_);
    verdict_.max_error = own.largest;
    verdict_.rmse = own.rms();
    verdict_.max_error_r1 = declared.largest;
    verdict_.rmse_r1 = declared.rms();
    verdict_.max_allowed = 4 * declared.largest + unit * size_.largest + smallest_half_step();
    verdict_.rmse_allowed = 4 * declared.rms() + unit * size_.rms() + smallest_half_step();
    if (own.count < kEnoughForRelative) return;
    if (own.largest > verdict_.max_allowed) {
      verdict_.findings.push_back(
          {"relative", fmt::format("max error {:.3g} exceeds {:.3g} (the expression in the declared "
                                   "types: {:.3g}, largest value {:.3g})",
                                   own.largest, verdict_.max_allowed, declared.largest, size_.largest)});
    }
    if (verdict_.rmse > verdict_.rmse_allowed) {
      verdict_.findings.push_back(
          {"relative", fmt::format("RMS error {:.3g} exceeds {:.3g} (the expression in the declared "
                                   "types: {:.3g})",
                                   verdict_.rmse, verdict_.rmse_allowed, verdict_.rmse_r1)});
    }
  }

  const JudgeInput& in_;
  const ExpectedOutput& expected_;
  DType out_ = DType::F32;
  double u_out_ = 0, u_acc_ = 0;
  Norms size_;
  Judgement verdict_;
};

}  // namespace

Judgement judge_expression(const JudgeInput& input) { return ExpressionJudge(input).judge(); }

}  // namespace tilewright::bench
