// Calling a kernel compiled for CUDA on host arrays: copies them to the device, launches, copies results back.
#pragma once

#include <vector>

#include "driver/call.h"
#include "runtime/cuda/device.h"
#include "target/gpu.h"

namespace tilewright::driver {

/// The planner's facts of an opened device.
Result<target::Gpu> gpu_facts(const cuda::Device& device);

/// True when every array meets the fast class: pitches that are multiples of 16 bytes (device allocations are aligned).
bool is_aligned_class(const Arrays& arrays);

class CudaKernel {
 public:
  static Result<CudaKernel> load(const cuda::Device& device, const runtime::Artefact& artefact);
  /// Runs once and waits. E1414 when the arrays are of another class; E3053 after a device fault.
  Status run(const ir::Kernel& kernel, Arrays& arrays) const;

 private:
  explicit CudaKernel(cuda::Device device) : device_(std::move(device)) {}
  cuda::Device device_;
  runtime::Recipe recipe_;
  std::vector<cuda::Kernel> kernels_;
};

}  // namespace tilewright::driver
