#include "base/killable_child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tilewright {

KillableChild::KillableChild(KillableChild&& other) noexcept { *this = std::move(other); }

KillableChild& KillableChild::operator=(KillableChild&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(end_, other.end_);
  std::swap(peak_resident_bytes_, other.peak_resident_bytes_);
  return *this;
}

void KillableChild::join_parents_fate(pid_t parent, int exit_code) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(exit_code);
}

bool KillableChild::reap(bool block) {
  if (end_) return true;
  if (pid_ <= 0) return false;
  int status = 0;
  rusage usage{};
  pid_t got = 0;
  do got = ::wait4(pid_, &status, block ? 0 : WNOHANG, &usage);
  while (got < 0 && errno == EINTR);
  if (got == 0) return false;
  end_ = got < 0 ? ChildEnd{} : WIFSIGNALED(status) ? ChildEnd{-1, WTERMSIG(status)} : ChildEnd{WEXITSTATUS(status), 0};
  peak_resident_bytes_ = usage.ru_maxrss * 1024;
  return true;
}

void KillableChild::kill() {
  if (!is_running()) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  reap(true);
}

std::string tail_of(int fd, size_t bytes) {
  const off_t size = fd < 0 ? 0 : ::lseek(fd, 0, SEEK_END);
  const off_t start = std::max<off_t>(0, size - static_cast<off_t>(bytes));
  std::string out(static_cast<size_t>(std::max<off_t>(0, size - start)), '\0');
  const ssize_t got = out.empty() ? 0 : ::pread(fd, out.data(), out.size(), start);
  out.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return out;
}

}  // namespace tilewright
