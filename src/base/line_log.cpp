#include "base/line_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <utility>

namespace tilewright {
namespace {

/// The lines that end in a newline, and how many bytes they take.
std::pair<std::vector<std::string>, size_t> whole_lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t at = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return {std::move(lines), at};
}

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Children of a killed writer hold its lock until they notice: waits up to two seconds for it.
bool lock_soon(int fd) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    usleep(20'000);
  }
  return false;
}

}  // namespace

LineLog::LineLog(LineLog&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), lines_(std::move(other.lines_)) {}

LineLog::~LineLog() {
  if (fd_ >= 0) close(fd_);
}

Result<LineLog> LineLog::open(const std::filesystem::path& path) {
  LineLog log;
  log.path_ = path;
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  log.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (log.fd_ < 0)
    return fail(DiagnosticCode::E3300, fmt::format("cannot open {}: {}", path.string(), strerror(errno)));
  if (!lock_soon(log.fd_)) {
    return fail(DiagnosticCode::E3303, fmt::format("{} is being written by another process", path.string()),
                "wait for it, or name another file");
  }
  auto [lines, whole] = whole_lines(read_all(path));
  log.lines_ = std::move(lines);
  if (ftruncate(log.fd_, static_cast<off_t>(whole)) != 0) {
    return fail(DiagnosticCode::E3301,
                fmt::format("cannot cut the torn last line of {}: {}", path.string(), strerror(errno)));
  }
  return log;
}

Status LineLog::append(std::string_view line) {
  const off_t before = lseek(fd_, 0, SEEK_END);
  const std::string whole = std::string(line) + "\n";
  for (size_t done = 0; done < whole.size();) {
    const ssize_t wrote = write(fd_, whole.data() + done, whole.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const int error = errno;
      const bool is_restored = ftruncate(fd_, before) == 0;
      return fail(error == ENOSPC || error == EFBIG ? DiagnosticCode::E3302 : DiagnosticCode::E3301,
                  fmt::format("cannot write {}: {}{}", path_.string(), strerror(error),
                              is_restored ? "" : "; its last line is torn"),
                  "what was recorded before is kept; make room and run the same command again");
    }
    done += static_cast<size_t>(wrote);
  }
  if (fsync(fd_) != 0 && errno != EINVAL) {
    return fail(DiagnosticCode::E3301, fmt::format("cannot sync {}: {}", path_.string(), strerror(errno)));
  }
  return {};
}

Result<std::vector<std::string>> read_lines(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return fail(DiagnosticCode::E3300, fmt::format("cannot open {}", path.string()));
  return whole_lines(read_all(path)).first;
}

}  // namespace tilewright
