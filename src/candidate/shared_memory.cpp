#include "candidate/shared_memory.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tilewright::candidate {

Result<SharedMemory> SharedMemory::create(size_t bytes) {
  SharedMemory out;
  out.size_ = bytes == 0 ? 1 : bytes;
  out.fd_ = ::memfd_create("tilewright-tensors", MFD_CLOEXEC);
  if (out.fd_ < 0 || ::ftruncate(out.fd_, static_cast<off_t>(out.size_)) != 0) {
    return fail(DiagnosticCode::E3301,
                fmt::format("cannot create {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  void* data = ::mmap(nullptr, out.size_, PROT_READ | PROT_WRITE, MAP_SHARED, out.fd_, 0);
  if (data == MAP_FAILED) {
    return fail(DiagnosticCode::E3301,
                fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  out.data_ = static_cast<std::byte*>(data);
  return out;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
  if (fd_ >= 0) ::close(fd_);
}

std::string SharedMemory::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_); }

}  // namespace tilewright::candidate
