// Memory that this process and a worker both see, for tensors: an anonymous memory file, which the worker opens by its
// path.
#pragma once

#include <cstddef>
#include <string>

#include "base/diagnostic.h"

namespace tilewright::candidate {

class SharedMemory {
 public:
  static Result<SharedMemory> create(size_t bytes);
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::string path() const;  ///< "/proc/<pid>/fd/<n>": any process of this user can map it while this one lives

 private:
  int fd_ = -1;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tilewright::candidate
