#include "tune/forked_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "measure/clock.h"

namespace tilewright::tune {
namespace {

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    // MSG_NOSIGNAL needs a socket: the ends are a socketpair, so a dead peer is an error and not a signal.
    const ssize_t done = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    text.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

void become_child(int log_fd, pid_t parent) {
  KillableChild::join_parents_fate(parent, 1);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(log_fd, STDOUT_FILENO);
  dup2(log_fd, STDERR_FILENO);
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGTERM}) signal(number, SIG_DFL);
}

}  // namespace

bool ParentChannel::send(std::string_view line) { return write_whole(out_fd_, std::string(line) + "\n"); }

std::optional<std::string> ParentChannel::receive() {
  std::string line;
  for (char c = 0;;) {
    const ssize_t got = read(in_fd_, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    if (c == '\n') return line;
    line.push_back(c);
  }
}

Result<ForkedProcess> ForkedProcess::start(const std::function<void(ParentChannel&)>& body) {
  std::array<int, 2> ends{};
  const auto refuse = [](const char* what) {
    return fail(DiagnosticCode::E1655,
                fmt::format("cannot start a trial process: {} failed: {}", what, strerror(errno)));
  };
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return refuse("socketpair");
  ForkedProcess child;
  child.log_fd_ = memfd_create("trial-output", MFD_CLOEXEC);
  child.read_fd_ = ends[0];
  if (child.log_fd_ < 0) {
    close(ends[1]);
    return refuse("memfd_create");
  }
  fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[1]);
    return refuse("fork");
  }
  if (pid == 0) {
    close(ends[0]);
    become_child(child.log_fd_, parent);
    ParentChannel channel(ends[1], ends[1]);
    body(channel);
    fflush(nullptr);
    _exit(0);
  }
  close(ends[1]);
  child.child_ = KillableChild(pid);
  return child;
}

ForkedProcess::ForkedProcess(ForkedProcess&& other) noexcept { *this = std::move(other); }

ForkedProcess& ForkedProcess::operator=(ForkedProcess&& other) noexcept {
  std::swap(child_, other.child_);
  std::swap(read_fd_, other.read_fd_);
  std::swap(log_fd_, other.log_fd_);
  std::swap(buffer_, other.buffer_);
  std::swap(end_, other.end_);
  return *this;
}

ForkedProcess::~ForkedProcess() {
  kill();
  if (read_fd_ >= 0) close(read_fd_);
  if (log_fd_ >= 0) close(log_fd_);
}

bool ForkedProcess::send(std::string_view line) { return write_whole(read_fd_, std::string(line) + "\n"); }

std::optional<std::string> ForkedProcess::read_line(int64_t deadline_ns) {
  for (;;) {
    const size_t newline = buffer_.find('\n');
    if (newline != std::string::npos) {
      std::string line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return line;
    }
    if (end_ != End::None) return std::nullopt;
    const int64_t left_ms = (deadline_ns - measure::kernel_ns()) / 1'000'000;
    pollfd waiting{read_fd_, POLLIN, 0};
    const int ready = left_ms > 0 ? poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left_ms, 1'000'000))) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && measure::kernel_ns() < deadline_ns) continue;
    if (ready <= 0) {
      kill();
      end_ = End::TimedOut;
      return std::nullopt;
    }
    std::array<char, 65536> chunk;
    const ssize_t got = read(read_fd_, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      buffer_.append(chunk.data(), static_cast<size_t>(got));
      continue;
    }
    // The channel closed: the process is ending, or closed every descriptor and goes on; neither counts any more.
    kill();
    end_ = child_.end() && child_.end()->signal != 0 ? End::Killed : End::Exited;
  }
}

std::string ForkedProcess::last_words() const {
  std::string text = tail_of(log_fd_, 300);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string ForkedProcess::describe_end() const {
  std::string text =
      end_ == End::TimedOut ? "no answer in time"
      : end_ == End::Killed
          ? fmt::format("killed by signal {} ({})", child_.end()->signal, strsignal(child_.end()->signal))
          : fmt::format("exited with code {}", child_.end() ? child_.end()->exit_code : -1);
  const std::string words = last_words();
  return words.empty() ? text : fmt::format("{}; it printed: {}", text, words);
}

}  // namespace tilewright::tune
