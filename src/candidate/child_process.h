// A child process that is spoken to in lines, with a time limit on every answer, and that never outlives its parent.
//
// Guarantees: the child gets its own process group, which is killed whole; it dies with its parent (PR_SET_PDEATHSIG);
// its stderr is kept and its tail shown when it dies. fork+exec: nothing of this process's memory or caches reaches the
// child.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/killable_child.h"

namespace tilewright::candidate {

struct ChildOptions {
  std::vector<std::string> argv;                          ///< argv[0] is looked up in PATH
  std::map<std::string, std::optional<std::string>> env;  ///< changes to the environment; nullopt removes
  std::string working_folder;                             ///< empty: ours
  bool inherit_stderr = false;                            ///< else it is kept for messages
};

using tilewright::ChildEnd;
std::string to_string(const ChildEnd& end);  ///< "exit 3", "SIGSEGV"

class ChildProcess {
 public:
  static Result<ChildProcess> start(const ChildOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  ///< kills it when it still runs

  pid_t pid() const { return child_.pid(); }
  /// Writes one line; E3202 when nobody reads any more.
  Status send_line(const std::string& line);
  /// The next line without its end; E3203 after `timeout` (the child is then killed), E3202 when it ended first.
  Result<std::string> read_line(std::chrono::milliseconds timeout);
  void close_input();
  /// Waits for the end; kills it after `timeout`.
  ChildEnd wait(std::chrono::milliseconds timeout);
  void kill() { child_.kill(); }
  std::string stderr_tail(size_t bytes = 600) const;
  /// Resources of the ended child: its own peak resident set.
  int64_t peak_resident_bytes() const { return child_.peak_resident_bytes(); }

 private:
  ChildProcess() = default;
  std::string why_it_ended() const;

  KillableChild child_;
  int to_child_ = -1, from_child_ = -1, stderr_ = -1;
  std::string name_, buffer_;
};

}  // namespace tilewright::candidate
