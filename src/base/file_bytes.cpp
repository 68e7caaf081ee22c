#include "base/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tilewright {
namespace {

/// Closes on the way out.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::unexpected<Diagnostic> cannot_read(const std::string& path) {
  return fail(DiagnosticCode::E3310, fmt::format("cannot read '{}': {}", path, std::strerror(errno)),
              "check the path and its permissions");
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

Result<MappedFile> map_file(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) return cannot_read(path);
  if (!S_ISREG(status.st_mode)) {
    return fail(DiagnosticCode::E3310, fmt::format("cannot read '{}': it is not a regular file", path));
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile{};
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (map == MAP_FAILED) return cannot_read(path);
  return MappedFile{{static_cast<const std::byte*>(map), size},
                    std::shared_ptr<const void>(map, [size](const void* p) { ::munmap(const_cast<void*>(p), size); })};
}

Status publish_file(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  bool ok = false;
  {
    const Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    ok = file.fd >= 0;
    for (const auto& piece : pieces) ok = ok && write_all(file.fd, piece);
    ok = ok && ::fsync(file.fd) == 0;
  }
  if (ok && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const std::string reason = std::strerror(errno);
  ::unlink(temporary.c_str());
  return fail(DiagnosticCode::E3311, fmt::format("cannot write '{}': {}", path, reason),
              "check the folder, its permissions and the space left");
}

}  // namespace tilewright
