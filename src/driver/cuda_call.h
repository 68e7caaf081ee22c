// Calling a kernel compiled for CUDA on host arrays: copies them to the device, executes the plan, copies results back.
#pragma once

#include <memory>
#include <vector>

#include "driver/call.h"
#include "runtime/cuda/device.h"
#include "target/gpu.h"

namespace tilewright::driver {

/// The planner's facts of an opened device.
Result<target::Gpu> gpu_facts(const cuda::Device& device);

/// True when every array meets the fast class: pitches that are multiples of 16 bytes (device allocations are aligned).
bool is_aligned_class(const Arrays& arrays);

/// True when an array has an extent, or the call an integer, that 32-bit index arithmetic does not take.
bool is_large_class(const Arrays& arrays);

class CudaKernel {
 public:
  static Result<CudaKernel> load(const cuda::Device& device, const runtime::Artefact& artefact);
  CudaKernel(CudaKernel&&) noexcept;
  ~CudaKernel();
  /// Runs once and waits; lines that the kernel prints go to stdout. E14xx when the arrays do not fit, E1420 when an
  /// assertion failed, E3053 after a device fault.
  Status run(const ir::Kernel& kernel, Arrays& arrays);

 private:
  CudaKernel();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright::driver
