// One line on the screen that says what is being measured and how long the rest will take. Silent for runs under two
// seconds.
#pragma once

#include <cstdint>
#include <string>

namespace tilewright::bench {

class Progress {
 public:
  /// `planned_ms` is the sum of what every step is expected to take.
  Progress(bool enabled, double planned_ms);
  ~Progress();

  void begin(const std::string& what, double expected_ms);
  void tick();  ///< draws again, at most four times a second on a terminal
  void note(const std::string& line);

 private:
  void draw(bool force);
  void erase();

  bool enabled_, is_terminal_;
  double planned_ms_, done_ms_ = 0, current_ms_ = 0;
  int64_t start_ns_, step_ns_ = 0, drawn_ns_ = 0;
  std::string what_;
  bool is_drawn_ = false;
};

}  // namespace tilewright::bench
