#include "bench/oracle/judge.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/narrow_float.h"
#include "bench/oracle/arguments.h"
#include "bench/oracle/judge_expression.h"

namespace tilewright::bench {
namespace {

constexpr double kVacuousAbove = 0.1;

struct Errors {
  double largest = 0;
  double sum_of_squares = 0;
  int64_t count = 0;
  size_t where = 0;

  void add(double error, size_t index) {
    if (error > largest) {
      largest = error;
      where = index;
    }
    sum_of_squares += error * error;
    ++count;
  }
  double rms() const { return count ? std::sqrt(sum_of_squares / static_cast<double>(count)) : 0; }
};

/// What the rules need to know of one output.
struct Context {
  const JudgeInput& in;
  const ExpectedOutput& expected;
  DType out;
  double u_out, u_acc, gamma;
  bool absolute, vacuous;

  explicit Context(const JudgeInput& input) : in(input), expected(input.expected.outputs[input.output]) {
    size_t next = 0;
    for (const Argument& arg : arguments(in.workload)) {
      if (arg.is_output() && next++ == in.output) out = arg.dtype;
    }
    u_out = unit_roundoff(out);
    u_acc = unit_roundoff(in.workload.dtypes.acc);
    const double ku = static_cast<double>(in.expected.terms) * u_acc;
    absolute = !expected.magnitude.empty() && is_float(out);
    vacuous = absolute && ku > kVacuousAbove;
    gamma = ku < 1 ? ku / (1 - ku) : 1;
    // The oracle itself is float64: where sums are float64 too, its own error counts as well.
    if (in.workload.dtypes.acc == DType::F64) gamma *= 2;
  }

  double absolute_bound(size_t i) const {
    const double of_sum = in.expected.lipschitz * (gamma + in.expected.extra_roundoff) * expected.magnitude[i];
    const double of_activation =
        in.workload.epilogue.activation == Epilogue::Activation::None ? 0 : 8 * u_acc * std::abs(expected.values[i]);
    return of_sum + of_activation + u_out * (std::abs(expected.values[i]) + of_sum) + smallest_half_step();
  }
  /// Half the spacing of the subnormals of the output type.
  double smallest_half_step() const {
    if (const NarrowFormat* format = narrow_format(out))
      return std::ldexp(1.0, -format->bias() - format->mantissa_bits);
    return out == DType::F32 ? 0x1p-150 : 0x1p-1074;
  }
  /// The oracle's value as the output type holds it: e4m3 and e5m2 saturate, the rest overflow to infinity.
  double threshold() const { return largest_finite(out) * (1 + u_out / 2); }
  bool saturates() const { return narrow_format(out) && narrow_format(out)->saturates; }
  double expected_value(size_t i) const {
    const double value = expected.values[i];
    return saturates() && std::abs(value) > largest_finite(out) ? std::copysign(largest_finite(out), value) : value;
  }
};

std::string place(const Context& c, size_t i) {
  const auto width = static_cast<size_t>(std::max<int64_t>(c.expected.row_width, 1));
  const int64_t row = c.expected.rows.empty() ? static_cast<int64_t>(i / width) : c.expected.rows[i / width];
  return fmt::format("row {} column {}", row, i % width);
}

/// True when the classes (finite, ±Inf, NaN) agree, or `slack` around the overflow threshold explains the difference.
bool same_pattern(const Context& c, double produced, double expected, double slack) {
  if (std::isnan(produced) || std::isnan(expected)) return std::isnan(produced) == std::isnan(expected);
  const bool produced_inf = std::isinf(produced),
             overflows = std::isinf(expected) || std::abs(expected) >= c.threshold();
  if (!produced_inf && !overflows) return true;
  if (std::signbit(produced) != std::signbit(expected)) return false;
  if (produced_inf && overflows) return true;
  if (produced_inf) return std::abs(expected) + slack >= c.threshold();
  return std::isfinite(expected) && std::abs(produced) + slack >= c.threshold();
}

void find_pattern_differences(const Context& c, double slack, Judgement& judgement) {
  int64_t differing = 0;
  size_t first = 0;
  for (size_t i = 0; i < c.in.produced.size(); ++i) {
    if (same_pattern(c, c.in.produced[i], c.expected_value(i), slack)) continue;
    if (differing++ == 0) first = i;
  }
  if (differing == 0) return;
  judgement.mismatches += differing;
  judgement.findings.push_back(
      {"pattern", fmt::format("{} values differ in NaN or infinity, first at {}: got {}, expected {}", differing,
                              place(c, first), c.in.produced[first], c.expected.values[first])});
}

void find_exact_differences(const Context& c, Judgement& judgement) {
  int64_t differing = 0;
  size_t first = 0;
  for (size_t i = 0; i < c.in.produced.size(); ++i) {
    if (c.in.produced[i] == c.expected.values[i]) continue;
    if (differing++ == 0) first = i;
  }
  if (differing == 0) return;
  judgement.mismatches += differing;
  judgement.findings.push_back(
      {"exact", fmt::format("{} of {} values differ, first at {}: got {}, expected {}", differing, c.in.produced.size(),
                            place(c, first), c.in.produced[first], c.expected.values[first])});
}

bool is_finite_everywhere(const Context& c, size_t i) {
  return std::isfinite(c.in.produced[i]) && std::isfinite(c.expected_value(i));
}

void apply_relative_rule(const Context& c, Judgement& j) {
  Errors own, reference, size;
  for (size_t i = 0; i < c.in.produced.size(); ++i) {
    const double y = c.expected_value(i);
    if (!std::isfinite(y)) continue;
    size.add(std::abs(y), i);
    if (i < c.in.r1.size() && std::isfinite(c.in.r1[i])) reference.add(std::abs(c.in.r1[i] - y), i);
    if (is_finite_everywhere(c, i)) own.add(std::abs(c.in.produced[i] - y), i);
  }
  const bool wide = c.in.workload.dtypes.acc == DType::F64 && !c.absolute;
  const bool loose = c.in.workload.dtypes.in == DType::BF16 || c.out == DType::BF16 || own.count < 1000;
  const double m = loose ? 3 : 2;
  j.max_error = own.largest;
  j.rmse = own.rms();
  j.max_error_r1 = reference.largest;
  j.rmse_r1 = reference.rms();
  // A float64 operator cannot be judged by a float64 oracle closer than both round: 64 units stand in for R1's error.
  const double unit = wide ? 64 * c.u_out : c.u_out;
  j.max_allowed = 2 * reference.largest + unit * size.largest + c.smallest_half_step();
  j.rmse_allowed = m * reference.rms() + unit * size.rms() + c.smallest_half_step();
  if (c.in.workload.dtypes.acc == DType::F64 && c.absolute) return;  // the absolute rule decides
  if (own.largest > j.max_allowed) {
    j.findings.push_back(
        {"relative", fmt::format("max error {:.3g} at {} exceeds {:.3g} (R1 {:.3g}, largest value {:.3g})", own.largest,
                                 place(c, own.where), j.max_allowed, reference.largest, size.largest)});
  }
  if (j.rmse > j.rmse_allowed) {
    j.findings.push_back({"relative", fmt::format("RMS error {:.3g} exceeds {:.3g} (R1 {:.3g}, m = {})", j.rmse,
                                                  j.rmse_allowed, j.rmse_r1, m)});
  }
}

void apply_absolute_rule(const Context& c, Judgement& j) {
  j.absolute_applies = c.absolute;
  j.absolute_is_vacuous = c.vacuous;
  if (!c.absolute || c.vacuous) return;
  int64_t beyond = 0;
  size_t worst = 0;
  for (size_t i = 0; i < c.in.produced.size(); ++i) {
    if (!is_finite_everywhere(c, i)) continue;
    const double ratio = std::abs(c.in.produced[i] - c.expected_value(i)) / c.absolute_bound(i);
    if (ratio > 1) ++beyond;
    if (ratio > j.worst_of_absolute) {
      j.worst_of_absolute = ratio;
      worst = i;
    }
  }
  if (beyond == 0) return;
  j.mismatches += beyond;
  j.findings.push_back(
      {"absolute",
       fmt::format(
           "{} of {} values exceed γ_K·Σ|a·b| + u·|y|, worst at {}: got {:.9g}, expected {:.9g}, allowed ±{:.3g}",
           beyond, c.in.produced.size(), place(c, worst), c.in.produced[worst], c.expected.values[worst],
           c.absolute_bound(worst))});
}

/// Largest bound that explains an overflow: the rules' own slack.
double overflow_slack(const Context& c) {
  double reference = 0, size = 0;
  for (size_t i = 0; i < c.expected.values.size(); ++i) {
    const double y = c.expected.values[i];
    if (!std::isfinite(y)) continue;
    size = std::max(size, std::abs(y));
    if (i < c.in.r1.size() && std::isfinite(c.in.r1[i])) reference = std::max(reference, std::abs(c.in.r1[i] - y));
  }
  return 2 * reference + c.u_out * size;
}

}  // namespace

Judgement judge_values(const JudgeInput& input) {
  if (input.workload.operation == Operation::Kernel) return judge_expression(input);
  const Context context(input);
  Judgement judgement;
  judgement.values = static_cast<int64_t>(input.produced.size());
  if (!is_float(context.out)) {
    find_exact_differences(context, judgement);
    return judgement;
  }
  find_pattern_differences(context, overflow_slack(context), judgement);
  apply_relative_rule(context, judgement);
  apply_absolute_rule(context, judgement);
  return judgement;
}

Judgement judge_indices(const JudgeInput& input, const HostTensor& first_input) {
  const Context context(input);
  Judgement judgement;
  judgement.values = static_cast<int64_t>(input.produced.size());
  const int64_t columns = input.workload.dim("C");
  std::vector<double> x(static_cast<size_t>(first_input.numel()));
  load_doubles(first_input.dtype, first_input.data.data(), x.data(), x.size());
  const auto per_row = input.workload.operation == Operation::TopK ? context.expected.row_width : 1;
  std::set<int64_t> seen;
  for (size_t i = 0; i < input.produced.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / per_row;
    if (static_cast<int64_t>(i) % per_row == 0) seen.clear();
    const auto index = static_cast<int64_t>(input.produced[i]);
    const auto right = static_cast<int64_t>(context.expected.values[i]);
    const bool inside = index >= 0 && index < columns && seen.insert(index).second;
    const double got = inside ? x[static_cast<size_t>(row * columns + index)] : 0;
    const double wanted = x[static_cast<size_t>(row * columns + right)];
    if (inside && (got == wanted || (std::isnan(got) && std::isnan(wanted)))) continue;
    if (judgement.mismatches++ == 0) {
      judgement.findings.push_back(
          {"indices",
           fmt::format("row {}: index {} {}, expected {} (value {})", row, index,
                       inside ? fmt::format("selects {}", got) : "is outside the row or repeated", right, wanted)});
    }
  }
  return judgement;
}

std::vector<double> rows_of(const HostTensor& tensor, const ExpectedOutput& expected) {
  std::vector<double> values(expected.values.size());
  if (expected.rows.empty()) {
    load_doubles(tensor.dtype, tensor.data.data(), values.data(), values.size());
    return values;
  }
  const auto width = static_cast<size_t>(expected.row_width);
  const auto row_bytes = width * static_cast<size_t>(bytes(tensor.dtype));
  for (size_t r = 0; r < expected.rows.size(); ++r) {
    load_doubles(tensor.dtype, tensor.data.data() + static_cast<size_t>(expected.rows[r]) * row_bytes,
                 values.data() + r * width, width);
  }
  return values;
}

nlohmann::json to_json(const Judgement& j) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& f : j.findings) findings.push_back({{"rule", f.rule}, {"text", f.text}});
  nlohmann::json out = {{"accepted", j.accepted()},      {"findings", findings},     {"values", j.values},
                        {"mismatches", j.mismatches},    {"max_error", j.max_error}, {"max_error_r1", j.max_error_r1},
                        {"max_allowed", j.max_allowed},  {"rmse", j.rmse},           {"rmse_r1", j.rmse_r1},
                        {"rmse_allowed", j.rmse_allowed}};
  if (j.absolute_applies) {
    out["absolute"] =
        j.absolute_is_vacuous
            ? nlohmann::json("vacuous: the bound exceeds a tenth of the values, the relative rule decides alone")
            : nlohmann::json(j.worst_of_absolute);
  }
  return out;
}

}  // namespace tilewright::bench
