#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codegen/cuda/emit_ptx.h"
#include "fuzz/recipe_call.h"
#include "fuzz/subject.h"
#include "plan/gpu/plan.h"
#include "runtime/cuda/runtime_device.h"
#include "runtime/plan.h"

namespace tilewright::fuzz {
namespace {

constexpr size_t kMargin = 256;
constexpr std::byte kCanary{0xA5};

std::unexpected<Diagnostic> to_error(const runtime::Failure& failure) {
  return std::unexpected(to_diagnostic(runtime::code_text(failure.code), failure.message));
}

/// The bytes a tensor's elements span, copied to the device between canaries, and back.
class DeviceCopy {
 public:
  DeviceCopy(runtime::Device& device, runtime::Binding::Range host) : device_(device), host_(host) {}
  DeviceCopy(DeviceCopy&& other) noexcept
      : device_(other.device_), host_(other.host_), memory_(std::exchange(other.memory_, nullptr)) {}
  ~DeviceCopy() {
    if (memory_) device_.free(memory_, bytes());
  }

  runtime::Status upload() {
    auto memory = device_.allocate(bytes());
    if (!memory) return std::unexpected(memory.error());
    memory_ = *memory;
    std::vector<std::byte> image(bytes(), kCanary);
    if (size() > 0) std::memcpy(image.data() + offset(), reinterpret_cast<const void*>(host_.low), size());
    return device_.copy_in(memory_, image.data(), image.size());
  }
  /// False when a canary was written.
  runtime::Result<bool> download() const {
    std::vector<std::byte> image(bytes());
    if (auto s = device_.copy_out(image.data(), memory_, image.size()); !s) return std::unexpected(s.error());
    if (size() > 0) std::memcpy(reinterpret_cast<void*>(host_.low), image.data() + offset(), size());
    const auto is_canary = [](std::byte b) { return b == kCanary; };
    return std::all_of(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(offset()), is_canary) &&
           std::all_of(image.begin() + static_cast<std::ptrdiff_t>(offset() + size()), image.end(), is_canary);
  }
  /// Where the host address lies on the device.
  void* translated(const void* host) const {
    if (size() == 0) return memory_;
    return static_cast<std::byte*>(memory_) + offset() + (reinterpret_cast<uintptr_t>(host) - host_.low);
  }

 private:
  size_t size() const { return host_.high - host_.low; }
  size_t offset() const { return kMargin + host_.low % 256; }  // the alignment of the host's array
  size_t bytes() const { return offset() + size() + kMargin; }

  runtime::Device& device_;
  runtime::Binding::Range host_;
  void* memory_ = nullptr;
};

/// Planner, PTX, the driver's assembler, a real device. Opened in the process that judges: a context does not survive
/// a fork.
class DeviceSubject : public Subject {
 public:
  explicit DeviceSubject(int ordinal) : ordinal_(ordinal) {}
  std::string name() const override { return fmt::format("device cuda:{}", ordinal_); }
  bool needs_fresh_process() const override { return true; }

  Status run(const ir::Kernel& kernel, const interp::Call& call, const Plant& plant) override {
    if (Status s = open(); !s) return s;
    const RuntimeArguments arguments(kernel, call);
    const uint64_t key = ir::content_key(kernel).low;
    for (const bool aligned : {true, false}) {
      auto plan = plan::gpu::plan(
          kernel, gpu_,
          {.plant = plant, .cluster = key % 2 == 0 ? 2 : 0, .row_walkers = key % 3 == 0 ? 2 : -1, .aligned = aligned});
      if (!plan) return std::unexpected(plan.error());
      runtime::Binding binding;
      const auto bound = runtime::bind(plan->recipe, arguments.get(), TW_CPU, binding);
      if (!bound && bound.error().is_class_fact && aligned) continue;
      if (!bound) return to_error(bound.error());
      return run_plan(kernel, call, std::move(*plan), binding);
    }
    return {};
  }

 private:
  Status open() {
    if (device_) return {};
    auto opened = cuda::Device::open(ordinal_);
    if (!opened) return std::unexpected(opened.error());
    const auto& f = opened->facts();
    const auto gpu = target::gpu_of(f.architecture, f.multiprocessors, f.shared_bytes_per_block);
    if (!gpu) return fail(DiagnosticCode::E2551, fmt::format("{} is older than sm_80", f.name));
    gpu_ = *gpu;
    device_ = cuda::make_runtime_device(std::move(*opened));
    return {};
  }

  Status run_plan(const ir::Kernel& kernel, const interp::Call& call, plan::gpu::GpuPlan plan,
                  const runtime::Binding& binding) {
    auto ptx = codegen::emit_ptx(plan.programs, {.architecture = gpu_.architecture});
    if (!ptx) return std::unexpected(ptx.error());
    const auto loaded = runtime::Plan::load(
        *device_, {.recipe = std::move(plan.recipe), .kind = runtime::CodeKind::Ptx, .code = std::move(*ptx)});
    if (!loaded) return to_error(loaded.error());
    interp::Call on_device = call;
    std::vector<DeviceCopy> copies;
    size_t argument = 0;
    for (size_t i = 0; i < call.tensors.size(); ++i) {
      if (kernel.tensors[i].direction == ir::Direction::Workspace) continue;
      DeviceCopy& copy = copies.emplace_back(*device_, binding.ranges[argument++]);
      if (auto s = copy.upload(); !s) return to_error(s.error());
      if (call.tensors[i].data) on_device.tensors[i].data = copy.translated(call.tensors[i].data);
    }
    if (auto s = execute(*loaded, kernel, on_device); !s) return to_error(s.error());
    for (const DeviceCopy& copy : copies) {
      const auto intact = copy.download();
      if (!intact) return to_error(intact.error());
      if (!*intact) return fail(DiagnosticCode::E9001, "bytes around a tensor were written on the device");
    }
    return {};
  }

  runtime::Status execute(const runtime::Plan& plan, const ir::Kernel& kernel, const interp::Call& call) {
    const RuntimeArguments arguments(kernel, call, TW_CUDA);
    const auto bytes = plan.workspace_bytes(arguments.get());
    if (!bytes) return std::unexpected(bytes.error());
    const auto workspace = device_->allocate(*bytes + 64);
    if (!workspace) return std::unexpected(workspace.error());
    auto done = plan.execute(arguments.get(), *workspace, *bytes, nullptr);
    if (done) done = device_->synchronise(nullptr);
    device_->free(*workspace, *bytes + 64);
    return done;
  }

  int ordinal_;
  target::Gpu gpu_;
  std::unique_ptr<runtime::Device> device_;
};

}  // namespace

std::unique_ptr<Subject> make_device_subject(int ordinal) { return std::make_unique<DeviceSubject>(ordinal); }

}  // namespace tilewright::fuzz
