#include "lang/read_once.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

namespace tilewright::lang {
namespace {

using enum DiagnosticCode;

constexpr std::string_view kStandardInput = "<stdin>";
constexpr size_t kMost = size_t{64} << 20;

bool is_standard_input(const std::string& path) {
  return path == "-" || path == "/dev/stdin" || path == kStandardInput;
}

Result<std::string> read_all(const std::string& name, int fd) {
  std::string out;
  while (true) {
    char buffer[65536];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(E3310, fmt::format("cannot read '{}': {}", name, std::strerror(errno)));
    if (got == 0) return out;
    out.append(buffer, static_cast<size_t>(got));
    if (out.size() > kMost) return fail(E1005, fmt::format("{} is longer than {} bytes; it is no kernel", name, kMost));
  }
}

}  // namespace

std::string source_name(const std::string& path) {
  return is_standard_input(path) ? std::string(kStandardInput) : path;
}

std::optional<Result<std::string>> read_once(const std::string& path) {
  // A stream belongs to the process, and so does what was read of it.
  static std::mutex mutex;
  static std::map<std::string, Result<std::string>> texts;
  const std::string name = source_name(path);
  const std::lock_guard lock(mutex);
  if (const auto there = texts.find(name); there != texts.end()) return there->second;
  if (is_standard_input(path)) return texts.emplace(name, read_all(name, STDIN_FILENO)).first->second;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return std::nullopt;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  const auto& text = texts.emplace(name, read_all(name, fd)).first->second;
  ::close(fd);
  return text;
}

}  // namespace tilewright::lang
