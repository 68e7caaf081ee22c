// A CUDA device as the harness uses it: memory for a candidate's tensors, a stream, events as a clock, the flush of the
// L2 cache. Opened in stage children only; candidates in the same process share its context (the primary one).
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/oracle/guarded_tensors.h"
#include "runtime/cuda/clock_reader.h"
#include "runtime/cuda/device.h"

namespace tilewright::bench {

/// True for "cuda:0" and the like.
bool is_cuda(const std::string& device);

class DeviceSession {
 public:
  /// "cuda:N". E3051 without a driver or a device, E1600 for another spelling.
  static Result<std::shared_ptr<DeviceSession>> open(const std::string& device);

  /// "cuda:NVIDIA-H200:sm_90": the device column.
  std::string name() const;
  void* stream() const { return stream_.handle(); }
  const cuda::Device& device() const { return device_; }

  Result<void*> allocate(size_t bytes);
  void release(void* memory);
  Status upload(void* to, const void* from, size_t bytes) const;
  Status download(void* to, const void* from, size_t bytes) const;
  Status fill(void* memory, uint8_t value, size_t bytes) const;

  /// ms on the device between just before and just after what `enqueue` puts on the stream. Something must be on the
  /// stream already (a flush, another launch): on an idle one the host's way to the device would be timed too.
  Result<double> timed(const std::function<Status()>& enqueue);
  /// ms of one of `count` enqueues among many: a few are captured as a graph and it is replayed, so that the host is
  /// out of the way. Fails when the work cannot be captured.
  Result<double> timed_in_graphs(const std::function<Status()>& enqueue, int count);
  /// ms the host is busy with `enqueue`; the device is idle before, and waited for after.
  Result<double> host_timed(const std::function<Status()>& enqueue);
  /// `count` launches of a kernel that does nothing, with half a kilobyte of parameters, by the driver alone.
  Status launch_empty(int count);
  /// Enqueues writes over twice the L2 cache, so that nothing else is in it.
  Status flush_l2();
  Status synchronize() const { return stream_.synchronize(); }

  /// Clocks in MHz, power in W and temperature now, as NVML says; null when it does not.
  nlohmann::json clocks() const;

  /// Bytes in use on the whole device now.
  Result<int64_t> used_bytes() const;
  /// GB/s, read plus written, of a copy far larger than the L2 cache; best of several.
  Result<double> copy_gb_per_s();

 private:
  explicit DeviceSession(cuda::Device device) : device_(std::move(device)) {}
  cuda::Device device_;
  cuda::Stream stream_;
  cuda::Event from_, to_;
  std::unique_ptr<cuda::ClockReader> clock_reader_;
  std::optional<cuda::Kernel> empty_;
  std::optional<cuda::DeviceBuffer> sweep_;
  std::vector<cuda::DeviceBuffer> buffers_;
};

/// Where GuardedTensors puts the buffers of a candidate on the device.
class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(std::shared_ptr<DeviceSession> session) : session_(std::move(session)) {}
  Result<void*> allocate(size_t bytes) override { return session_->allocate(bytes); }
  void release(void* block) override { session_->release(block); }
  Status upload(void* to, const std::byte* from, size_t bytes) override { return session_->upload(to, from, bytes); }
  Status download(std::byte* to, const void* from, size_t bytes) override {
    return session_->download(to, from, bytes);
  }

 private:
  std::shared_ptr<DeviceSession> session_;
};

}  // namespace tilewright::bench
