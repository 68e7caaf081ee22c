#include "bench/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "measure/clock.h"

namespace tilewright::bench {
namespace {

std::string duration(double ms) {
  const auto seconds = static_cast<int64_t>(ms / 1000 + 0.5);
  return seconds < 60 ? fmt::format("{} s", seconds) : fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
}

}  // namespace

Progress::Progress(bool enabled, double planned_ms)
    : enabled_(enabled),
      is_terminal_(::isatty(STDERR_FILENO) != 0),
      planned_ms_(planned_ms),
      start_ns_(measure::kernel_ns()) {}

Progress::~Progress() { erase(); }

void Progress::begin(const std::string& what, double expected_ms) {
  done_ms_ += current_ms_;
  current_ms_ = expected_ms;
  step_ns_ = measure::kernel_ns();
  what_ = what;
  draw(true);
}

void Progress::tick() { draw(false); }

void Progress::note(const std::string& line) {
  if (!enabled_) return;
  erase();
  fmt::print(stderr, "{}\n", line);
}

void Progress::draw(bool force) {
  const int64_t now = measure::kernel_ns();
  if (!enabled_ || planned_ms_ < 2000) return;
  if (is_terminal_ && !force && now - drawn_ns_ < 250'000'000) return;
  if (!is_terminal_ && now - drawn_ns_ < 5'000'000'000 && drawn_ns_ != 0) return;
  drawn_ns_ = now;
  // The plan is corrected by how the steps so far compared with it; the first of them weigh little against the whole.
  const double elapsed = static_cast<double>(now - start_ns_) * 1e-6;
  const double in_step = std::min(static_cast<double>(now - step_ns_) * 1e-6, current_ms_);
  const double planned_so_far = std::max(done_ms_ + in_step, 1.0);
  const double inertia = planned_ms_ / 4;
  const double speed = std::clamp((elapsed + inertia) / (planned_so_far + inertia), 0.2, 5.0);
  // A step that takes longer than it should is not about to end.
  const double overrun = std::max(static_cast<double>(now - step_ns_) * 1e-6 - current_ms_, 0.0) / 2;
  const double left = std::max(planned_ms_ - planned_so_far, 0.0) * speed + overrun;
  const int percent = static_cast<int>(100 * std::min(planned_so_far / std::max(planned_ms_, 1.0), 1.0));
  const std::string line = fmt::format("[{:3}%] {} · {} left", percent, what_, duration(left));
  if (is_terminal_)
    fmt::print(stderr, "\r\x1b[K{}", line);
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
  is_drawn_ = is_terminal_;
}

void Progress::erase() {
  if (is_drawn_) fmt::print(stderr, "\r\x1b[K");
  is_drawn_ = false;
}

}  // namespace tilewright::bench
