// Where a candidate of ours computes: the processor of this machine or one of its CUDA devices. Opens the device,
// compiles for it through the cache of the run, loads the code.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "cache/kernel_cache.h"
#include "candidate/candidate.h"
#include "driver/compile.h"
#include "driver/program.h"
#include "runtime/cuda/device.h"
#include "runtime/plan.h"
#include "target/gpu.h"

namespace tilewright::adapters {

class KernelTarget {
 public:
  /// "cpu" or "cuda:N"; E3204 for another spelling. Opens nothing yet.
  static Result<KernelTarget> of(const candidate::OpenOptions& options);

  /// Context, cache, and with an empty cache the compiler's libraries: costs of the process, not of a kernel. E3051
  /// without a driver.
  Status open();
  bool is_open() const { return device_ != nullptr; }

  /// "cpu:x86-64-v4", "cuda:sm_90a"; "cuda" while it is not open.
  std::string name() const;
  lang::Target language_target() const { return is_cuda_ ? lang::Target::Cuda : lang::Target::Cpu; }
  tw_device_kind kind() const { return is_cuda_ ? TW_CUDA : TW_CPU; }

  /// For tensors of these shapes: they decide the class of the code on a device.
  Result<driver::Compilation> compile(const ir::Kernel& kernel, std::span<const candidate::Tensor> shapes) const;
  Result<runtime::Plan> load(const runtime::Artefact& artefact) const;

 private:
  candidate::OpenOptions options_;
  bool is_cuda_ = false;
  int ordinal_ = 0;
  std::unique_ptr<cache::KernelCache> cache_;
  std::optional<cuda::Device> gpu_;
  target::Gpu facts_;
  std::unique_ptr<runtime::Device> device_;
};

}  // namespace tilewright::adapters
