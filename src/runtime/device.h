// What a plan needs from a device: loading code, running its launches, memory. The CPU is here; CUDA implements the
// same three classes in runtime/cuda.
#pragma once

#include <memory>
#include <span>

#include "runtime/artefact.h"
#include "runtime/object_loader.h"

namespace tilewright::runtime {

/// One execution, after all checks. Everything lives as long as the call.
struct Execution {
  const Recipe& recipe;
  std::span<const int64_t> slots;
  std::span<void* const> pointers;  ///< tensors, then workspaces
  void* scratch;                    ///< `workers` areas of `scratch_stride` bytes
  size_t scratch_stride;
  void* stream;  ///< CUDA: the caller's stream
};

/// Loaded code of one artefact. Immutable; run() may be called from several threads at once and allocates nothing
/// unless it fails. The device must outlive it.
class Code {
 public:
  virtual ~Code() = default;
  virtual Status run(const Execution& execution) const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual tw_device_kind kind() const = 0;
  virtual std::string description() const = 0;  ///< "cpu, 2 threads"
  virtual Result<std::unique_ptr<Code>> load(const Artefact& artefact) = 0;
  /// Code that is part of the program; CPU only. `entries` belong to the recipe's launches.
  virtual Result<std::unique_ptr<Code>> link(const Recipe& recipe, std::span<const tw_cpu_entry> entries) = 0;
  /// How many scratch areas an execution needs.
  virtual int32_t workers() const = 0;
  /// Memory for buffers and workspaces, 64-byte aligned or better.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) = 0;
  virtual Status copy_in(void* to, const void* host, size_t bytes) = 0;
  virtual Status copy_out(void* host, const void* from, size_t bytes) = 0;
  virtual Status zero(void* memory, size_t bytes, void* stream) = 0;
  /// Waits for `stream` and reports what a launch left behind (a failed assertion on CUDA).
  virtual Status synchronise(void* stream) = 0;
};

struct CpuOptions {
  int threads = 0;                ///< of the device's own pool, the caller included; 0: all the process may use
  int32_t spin_us = 0;            ///< of its workers while idle; see ThreadPool
  const tw_pool* pool = nullptr;  ///< the caller's, copied; must outlive the device's plans
  CodeVisibility visibility;
  tw_print print = nullptr;
  void* print_context = nullptr;
};

std::unique_ptr<Device> open_cpu(const CpuOptions& options = {});

/// Defined by runtime/cuda; its address is null in a library that was built without it.
#if defined(__GNUC__)
__attribute__((weak))
#endif
Result<std::unique_ptr<Device>>
open_cuda(int ordinal, tw_print print, void* print_context);

}  // namespace tilewright::runtime
