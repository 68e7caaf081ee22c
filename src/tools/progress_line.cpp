#include "tools/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tilewright::tools {

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), start_(std::chrono::steady_clock::now()), is_terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::update(int64_t done, int64_t total, const std::string& note) {
  const double spent_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (!is_terminal_ || spent_s < 2 || total <= 0 || done <= 0) return;
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(kWidth * std::min(done, total) / total);
  const double left_s = spent_s / static_cast<double>(done) * static_cast<double>(total - done);
  fmt::print(stderr, "\r\033[K{} [{}{}] {}/{}  {:.0f} s left  {}", what_, std::string(static_cast<size_t>(filled), '#'),
             std::string(static_cast<size_t>(kWidth - filled), '.'), done, total, left_s, note.substr(0, 60));
  std::fflush(stderr);
  is_shown_ = true;
}

void ProgressLine::finish() {
  if (is_shown_) fmt::print(stderr, "\r\033[K");
  is_shown_ = false;
}

}  // namespace tilewright::tools
