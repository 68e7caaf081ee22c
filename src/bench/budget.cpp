#include "bench/budget.h"

namespace tilewright::bench {
namespace {

measure::StopRule rule(double min_total_ms, double timeout_ms) {
  measure::StopRule out;
  out.min_total_ms = min_total_ms;
  out.timeout_ms = timeout_ms;
  return out;
}

}  // namespace

std::optional<Budget> find_budget(std::string_view name) {
  Budget out;
  out.name = name;
  if (name == "full") {
    out.hot = rule(200, 3000);
    return out;
  }
  if (name == "ci") {
    out.warm = rule(500, 5000);
    out.hot = rule(100, 1000);
    out.import_min_ms = 1000;
    return out;
  }
  if (name == "quick") {
    out.import_processes = 5;
    out.import_min_ms = 0;
    out.compile_processes = 3;
    out.warm_processes = 2;
    out.warm = rule(500, 3000);
    out.hot = rule(100, 500);
    out.ratio_rounds_limit = 104;
    out.sustained_rounds = 1;
    return out;
  }
  if (name == "selftest") {
    out.import_processes = 2;
    out.import_min_ms = 0;
    out.compile_processes = 2;
    out.warm_processes = 1;
    out.warm = rule(20, 400);
    out.hot = rule(10, 200);
    out.ratio_rounds = 20;
    out.ratio_rounds_limit = 20;
    out.fuzz_shapes = 0;
    out.sustained_rounds = 0;
    out.roofline_repeats = 10;
    return out;
  }
  return std::nullopt;
}

double expected_ms(const Budget& b, bool is_reference) {
  constexpr double kProcess = 150, kCheck = 2500, kRound = 25;
  const double import_stage = std::max(b.import_processes * kProcess, b.import_min_ms) + 3 * kProcess;
  const double compile = 2 * b.compile_processes * 2 * kProcess;
  const double warm = b.warm_processes * (2 * kProcess + std::min(b.warm.timeout_ms, 3 * b.warm.min_total_ms) +
                                          std::min(b.hot.timeout_ms, 2 * b.hot.min_total_ms));
  const double whole = kCheck + import_stage + compile + warm + 2 * kProcess;
  if (is_reference) return whole;
  return whole + b.sustained_rounds * 1000 + 500 + b.ratio_rounds_limit / 2.0 * kRound;
}

}  // namespace tilewright::bench
