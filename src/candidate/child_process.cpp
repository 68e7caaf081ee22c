#include "candidate/child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

extern char** environ;

namespace tilewright::candidate {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> child_environment(const ChildOptions& options) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!options.env.contains(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [name, value] : options.env) {
    if (value) out.push_back(name + "=" + *value);
  }
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

struct Pipes {
  int in[2] = {-1, -1};          ///< parent writes in[1]
  int out[2] = {-1, -1};         ///< parent reads out[0]
  int error = -1;                ///< memory file that keeps stderr
  int exec_fault[2] = {-1, -1};  ///< closed by exec, or carries errno
};

[[noreturn]] void become_child(const ChildOptions& options, Pipes& pipes, pid_t parent, char** argv, char** env) {
  KillableChild::join_parents_fate(parent, 127);
  ::dup2(pipes.in[0], STDIN_FILENO);
  ::dup2(pipes.out[1], STDOUT_FILENO);
  if (!options.inherit_stderr) ::dup2(pipes.error, STDERR_FILENO);
  ::signal(SIGPIPE, SIG_DFL);
  if (options.working_folder.empty() || ::chdir(options.working_folder.c_str()) == 0) ::execvpe(argv[0], argv, env);
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(pipes.exec_fault[1], &error, sizeof error);
  ::_exit(127);
}

void close_all(std::initializer_list<int> fds) {
  for (int fd : fds) {
    if (fd >= 0) ::close(fd);
  }
}

}  // namespace

std::string to_string(const ChildEnd& end) {
  if (end.signal == 0) return fmt::format("exit {}", end.exit_code);
  const char* name = ::sigabbrev_np(end.signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", end.signal);
}

Result<ChildProcess> ChildProcess::start(const ChildOptions& options) {
  ChildProcess child;
  child.name_ = options.argv.front();
  Pipes pipes;
  if (::pipe2(pipes.in, O_CLOEXEC) != 0 || ::pipe2(pipes.out, O_CLOEXEC) != 0 ||
      ::pipe2(pipes.exec_fault, O_CLOEXEC) != 0 || (pipes.error = ::memfd_create("stderr", MFD_CLOEXEC)) < 0) {
    return fail(DiagnosticCode::E3202, fmt::format("cannot make pipes for {}: {}", child.name_, std::strerror(errno)));
  }
  std::vector<std::string> argv = options.argv, env = child_environment(options);
  const std::vector<char*> argv_pointers = pointers(argv), env_pointers = pointers(env);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become_child(options, pipes, parent, const_cast<char**>(argv_pointers.data()),
                 const_cast<char**>(env_pointers.data()));
  }
  close_all({pipes.in[0], pipes.out[1], pipes.exec_fault[1]});
  child.child_ = KillableChild(pid);
  child.to_child_ = pipes.in[1];
  child.from_child_ = pipes.out[0];
  child.stderr_ = pipes.error;
  int error = pid < 0 ? errno : 0;
  const bool exec_failed = pid > 0 && ::read(pipes.exec_fault[0], &error, sizeof error) == sizeof error;
  ::close(pipes.exec_fault[0]);
  if (pid < 0 || exec_failed) {
    return fail(DiagnosticCode::E3200, fmt::format("cannot start {}: {}", child.name_, std::strerror(error)));
  }
  ::signal(SIGPIPE, SIG_IGN);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(child_, other.child_);
  std::swap(to_child_, other.to_child_);
  std::swap(from_child_, other.from_child_);
  std::swap(stderr_, other.stderr_);
  std::swap(name_, other.name_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

ChildProcess::~ChildProcess() {
  kill();
  close_all({to_child_, from_child_, stderr_});
}

Status ChildProcess::send_line(const std::string& line) {
  std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(to_child_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(DiagnosticCode::E3202, why_it_ended());
    done += static_cast<size_t>(written);
  }
  return {};
}

Result<std::string> ChildProcess::read_line(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (true) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poll_fd{from_child_, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&poll_fd, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30))) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      kill();
      return fail(DiagnosticCode::E3203,
                  fmt::format("{} did not answer within {} ms and was killed", name_, timeout.count()));
    }
    char chunk[4096];
    const ssize_t got = ::read(from_child_, chunk, sizeof chunk);
    if (got > 0)
      buffer_.append(chunk, static_cast<size_t>(got));
    else if (got == 0 || errno != EINTR) {
      child_.reap(true);
      return fail(DiagnosticCode::E3202, why_it_ended());
    }
  }
}

void ChildProcess::close_input() {
  if (to_child_ >= 0) ::close(to_child_);
  to_child_ = -1;
}

ChildEnd ChildProcess::wait(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  auto pause = std::chrono::microseconds(50);
  while (!child_.reap(false)) {
    if (Clock::now() > deadline) kill();
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
  return *child_.end();
}

std::string ChildProcess::stderr_tail(size_t bytes) const {
  std::string out = tail_of(stderr_, bytes);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

std::string ChildProcess::why_it_ended() const {
  std::string out = fmt::format("{} ended ({})", name_, child_.end() ? to_string(*child_.end()) : "its pipe is closed");
  if (const std::string tail = stderr_tail(); !tail.empty()) out += ": " + tail;
  return out;
}

}  // namespace tilewright::candidate
