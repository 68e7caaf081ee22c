// A forked child that talks in lines and can be killed at any moment. (candidate/child_process.h starts programs; this
// runs a function on a copy of this process, so a trial needs no second start of the compiler.)
//
// The child runs `body` in its own process group, dies with its parent, leaves no core file, and its stdout and stderr
// go to memory whose tail explains a death. The parent reads lines against a deadline. Destroying a ForkedProcess kills
// the group and reaps it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "base/killable_child.h"

namespace tilewright::tune {

/// The child's end: lines to the parent, lines from it.
class ParentChannel {
 public:
  ParentChannel(int in_fd, int out_fd) : in_fd_(in_fd), out_fd_(out_fd) {}
  bool send(std::string_view line);      ///< adds the newline; false when the parent is gone
  std::optional<std::string> receive();  ///< blocks; nullopt when the parent is gone

 private:
  int in_fd_, out_fd_;
};

class ForkedProcess {
 public:
  enum class End : uint8_t { None, Exited, Killed, TimedOut };

  static Result<ForkedProcess> start(const std::function<void(ParentChannel&)>& body);
  ForkedProcess(ForkedProcess&& other) noexcept;
  ForkedProcess& operator=(ForkedProcess&& other) noexcept;
  ~ForkedProcess();

  /// The next line, or nullopt when the child ended or `deadline_ns` (of measure::kernel_ns) passed; `end()` says
  /// which.
  std::optional<std::string> read_line(int64_t deadline_ns);
  bool send(std::string_view line);
  void kill() { child_.kill(); }

  End end() const { return end_; }
  /// "exited with code 3", "killed by signal 11 (Segmentation fault)", "no answer in time", with the last words it
  /// printed.
  std::string describe_end() const;

 private:
  ForkedProcess() = default;
  std::string last_words() const;

  KillableChild child_;
  int read_fd_ = -1, log_fd_ = -1;
  std::string buffer_;
  End end_ = End::None;
};

}  // namespace tilewright::tune
