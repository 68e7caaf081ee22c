// Devices, memory, streams, events, modules and kernels of CUDA as owning values. Everything is move-only and frees
// itself. A Device retains the primary context, so that other libraries of the process (PyTorch, cuBLAS) share it.
// Calls from any thread: each function makes the device current for the calling thread first.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "runtime/cuda/driver.h"

namespace tilewright::cuda {

struct DeviceFacts {
  std::string name;      ///< "NVIDIA H200"
  int architecture = 0;  ///< 90
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  ///< opt-in limit
  int shared_bytes_per_multiprocessor = 0;
  int l2_bytes = 0;
  size_t memory_bytes = 0;
  int driver_version = 0;
  std::string pci_bus_id;  ///< "0000:1b:00.0": the device's name in NVML, whose numbering may differ
};

class Device {
 public:
  static Result<int> count();
  /// Opens device `ordinal` and its primary context.
  static Result<Device> open(int ordinal = 0);
  const DeviceFacts& facts() const { return state_->facts; }
  const Driver& driver() const { return *state_->driver; }
  int ordinal() const { return state_->ordinal; }
  Status make_current() const;
  Status synchronize() const;
  Result<size_t> free_bytes() const;

 private:
  struct State {
    const Driver* driver = nullptr;
    int ordinal = 0;
    int handle = 0;
    void* context = nullptr;
    DeviceFacts facts;
    ~State();
  };
  std::shared_ptr<const State> state_;
};

/// A handle freed by one driver call.
template <typename Tag>
class Owned {
 public:
  Owned() = default;
  Owned(Device device, void* handle) : device_(std::make_unique<Device>(std::move(device))), handle_(handle) {}
  Owned(Owned&& other) noexcept : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ && device_) {
      (void)device_->make_current();
      Tag::release(device_->driver(), handle_);
    }
  }
  void* handle() const { return handle_; }
  const Device& device() const { return *device_; }

 private:
  std::unique_ptr<Device> device_;
  void* handle_ = nullptr;
};

struct MemoryTag {
  static void release(const Driver& d, void* h) { d.memory_free(reinterpret_cast<uint64_t>(h)); }
};
struct PinnedTag {
  static void release(const Driver& d, void* h) { d.host_free(h); }
};
struct StreamTag {
  static void release(const Driver& d, void* h) { d.stream_destroy(h); }
};
struct EventTag {
  static void release(const Driver& d, void* h) { d.event_destroy(h); }
};
struct ModuleTag {
  static void release(const Driver& d, void* h) { d.module_unload(h); }
};
struct GraphTag {
  static void release(const Driver& d, void* h) { d.graph_executable_destroy(h); }
};

class DeviceBuffer : public Owned<MemoryTag> {
 public:
  using Owned::Owned;
  static Result<DeviceBuffer> allocate(const Device& device, size_t bytes);
  uint64_t address() const { return reinterpret_cast<uint64_t>(handle()); }
  size_t size() const { return bytes_; }
  Status upload(const void* from, size_t bytes, size_t offset = 0) const;
  Status download(void* to, size_t bytes, size_t offset = 0) const;
  Status fill_bytes(uint8_t value, void* stream = nullptr) const;

 private:
  size_t bytes_ = 0;
};

class PinnedBuffer : public Owned<PinnedTag> {
 public:
  using Owned::Owned;
  static Result<PinnedBuffer> allocate(const Device& device, size_t bytes);
};

class Stream : public Owned<StreamTag> {
 public:
  using Owned::Owned;
  static Result<Stream> create(const Device& device);
  Status synchronize() const;
};

class Event : public Owned<EventTag> {
 public:
  using Owned::Owned;
  static Result<Event> create(const Device& device);
  Status record(void* stream) const;
  Status synchronize() const;
};
Result<float> elapsed_ms(const Event& from, const Event& to);

/// Work captured from a stream, replayed as one launch.
class Graph : public Owned<GraphTag> {
 public:
  using Owned::Owned;
  /// Everything `enqueue` puts on `stream` becomes the graph.
  template <typename F>
  static Result<Graph> capture(const Stream& stream, F&& enqueue) {
    if (auto s = begin(stream); !s) return std::unexpected(s.error());
    const Status status = enqueue();
    auto graph = end(stream);
    if (!status) return std::unexpected(status.error());
    return graph;
  }
  Status launch(void* stream) const;

 private:
  static Status begin(const Stream& stream);
  static Result<Graph> end(const Stream& stream);
};

struct LaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned threads = 128;
  unsigned shared_bytes = 0;
  bool overlaps_previous = false;  ///< programmatic dependent launch: the kernel itself waits with griddepcontrol
};

class Kernel {
 public:
  /// `arguments[i]` points at the i-th parameter's bytes. The error names the kernel.
  Status launch(const LaunchShape& shape, std::span<void*> arguments, void* stream) const;
  int registers() const { return registers_; }
  int local_bytes() const { return local_bytes_; }
  const std::string& name() const { return name_; }

 private:
  friend class Module;
  std::shared_ptr<const Owned<ModuleTag>> module_;
  void* function_ = nullptr;
  std::string name_;
  int registers_ = 0, local_bytes_ = 0;
};

class Module {
 public:
  /// Loads a cubin, or PTX text (the driver assembles it; its log is in the error).
  static Result<Module> load(const Device& device, const std::string& image);
  /// Entry `name`, allowed `shared_bytes` of dynamic shared memory. E2554 when over the device's limit.
  Result<Kernel> kernel(const std::string& name, int shared_bytes) const;

 private:
  std::shared_ptr<const Owned<ModuleTag>> module_;
};

}  // namespace tilewright::cuda
