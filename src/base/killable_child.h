// What every child process of ours shares: its own process group, killed whole; death with its parent; one wait that
// also tells what it used; the tail of what it wrote to a memory file.
//
// Does not start it (candidate/child_process.h runs a program, tune/forked_process.h a function) or talk to it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tilewright {

/// How a child ended.
struct ChildEnd {
  int exit_code = -1;  ///< −1 when a signal ended it
  int signal = 0;
  bool is_success() const { return signal == 0 && exit_code == 0; }
};

class KillableChild {
 public:
  KillableChild() = default;
  explicit KillableChild(pid_t pid) : pid_(pid) {}
  KillableChild(KillableChild&& other) noexcept;
  KillableChild& operator=(KillableChild&& other) noexcept;
  ~KillableChild() { kill(); }

  /// In the child, right after fork: own group, SIGKILL when `parent` dies, exit at once when it is dead already.
  static void join_parents_fate(pid_t parent, int exit_code);

  pid_t pid() const { return pid_; }
  bool is_running() const { return pid_ > 0 && !end_; }
  /// True when it has ended; waits for that when `block`.
  bool reap(bool block);
  /// The group and the child, with SIGKILL; reaps it. Nothing when it has ended.
  void kill();
  const std::optional<ChildEnd>& end() const { return end_; }
  int64_t peak_resident_bytes() const { return peak_resident_bytes_; }  ///< of the ended child

 private:
  pid_t pid_ = -1;
  std::optional<ChildEnd> end_;
  int64_t peak_resident_bytes_ = 0;
};

/// The last `bytes` of a file that is open for reading.
std::string tail_of(int fd, size_t bytes);

}  // namespace tilewright
