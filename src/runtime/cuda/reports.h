// What kernels leave behind: the buffer that assert and print write to, and the texts of every loaded kernel that can.
// Thread-safe. Reading waits for nothing: the caller has waited for the work.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/runtime_device.h"
#include "runtime/recipe.h"

namespace tilewright::cuda {

class Reports {
 public:
  Reports(Device device, const ReportOptions& options) : device_(std::move(device)), options_(options) {}

  /// The buffer's address; made (and zeroed) when the first kernel needs it.
  Result<uint64_t> address();
  /// Gives the messages of one kernel ids of their own: the first of them.
  int32_t add(const std::vector<runtime::Message>& messages);
  /// Prints what was printed; the failed assertion, if there is one. The work has been waited for.
  runtime::Status read();

 private:
  const runtime::Message* find(int32_t id) const;
  void print(const std::vector<char>& bytes, uint32_t wanted) const;
  runtime::Status failed(const std::vector<char>& bytes) const;

  std::mutex mutex_;
  Device device_;
  ReportOptions options_;
  std::unique_ptr<DeviceBuffer> buffer_;
  std::vector<runtime::Message> messages_;
};

}  // namespace tilewright::cuda
