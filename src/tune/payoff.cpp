#include "tune/payoff.h"

#include <fmt/format.h>

namespace tilewright::tune {
namespace {

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

}  // namespace

Payoff weigh(const std::vector<ShapePayoff>& shapes, double tune_ms, double requests_per_s) {
  Payoff payoff;
  for (const ShapePayoff& shape : shapes) {
    payoff.covered += shape.share;
    payoff.default_ms += shape.share * shape.default_ms;
    payoff.tuned_ms += shape.share * shape.tuned_ms;
  }
  payoff.gain_ms = payoff.default_ms - payoff.tuned_ms;
  if (payoff.covered > 0) {
    payoff.default_ms /= payoff.covered;
    payoff.tuned_ms /= payoff.covered;
  }
  if (payoff.gain_ms > 0) {
    payoff.break_even_calls = tune_ms / payoff.gain_ms;
    if (requests_per_s > 0) payoff.break_even_s = *payoff.break_even_calls / requests_per_s;
  }
  return payoff;
}

std::string describe(const Payoff& payoff) {
  if (!payoff.break_even_calls) return "never pays";
  std::string text = fmt::format("pays after {:.0f} calls", *payoff.break_even_calls);
  if (payoff.break_even_s) text += fmt::format(" ({} of this traffic)", duration(*payoff.break_even_s));
  return text;
}

}  // namespace tilewright::tune
