// One line on the terminal for work of more than two seconds: how far, how long still, what is being done. Silent when
// stderr is not a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tilewright::tools {

class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine() { finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(int64_t done, int64_t total, const std::string& note = {});
  void finish();  ///< removes the line

 private:
  std::string what_;
  std::chrono::steady_clock::time_point start_;
  bool is_terminal_;
  bool is_shown_ = false;
};

}  // namespace tilewright::tools
