#include "runtime/cuda/runtime_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/loaded_code.h"
#include "runtime/cuda/reports.h"

namespace tilewright::cuda {
namespace {

using runtime::FailureCode;
using runtime::Recipe;

class CudaDevice final : public runtime::Device {
 public:
  CudaDevice(cuda::Device device, const ReportOptions& options) : device_(device), reports_(device, options) {}

  tw_device_kind kind() const override { return TW_CUDA; }
  std::string description() const override {
    return fmt::format("cuda:{}, {}, sm_{}", device_.ordinal(), device_.facts().name, device_.facts().architecture);
  }
  int32_t workers() const override { return 1; }
  runtime::Result<std::unique_ptr<runtime::Code>> load(const runtime::Artefact& artefact) override {
    return load_code(device_, reports_, artefact);
  }
  runtime::Result<std::unique_ptr<runtime::Code>> link(const Recipe& recipe, std::span<const tw_cpu_entry>) override {
    return runtime::fail(FailureCode::wrong_device, recipe.kernel + " was built for a CPU");
  }
  runtime::Result<void*> allocate(size_t bytes) override {
    uint64_t address = 0;
    if (Status s = device_.make_current(); !s) return std::unexpected(to_failure(s.error()));
    const int result = device_.driver().memory_allocate(&address, std::max<size_t>(bytes, 16));
    if (Status s = device_.driver().check(result, fmt::format("allocating {} bytes", bytes)); !s)
      return std::unexpected(to_failure(s.error()));
    return reinterpret_cast<void*>(address);
  }
  void free(void* memory, size_t) override {
    if (device_.make_current()) device_.driver().memory_free(reinterpret_cast<uint64_t>(memory));
  }
  runtime::Status copy_in(void* to, const void* host, size_t bytes) override {
    if (Status s = device_.make_current(); !s) return to_status(s);
    const Driver& driver = device_.driver();
    if (Status s =
            driver.check(driver.copy_to_device(reinterpret_cast<uint64_t>(to), host, bytes), "copying to the device");
        !s)
      return to_status(s);
    // The copy of pageable memory may still be under way, and streams of the caller need not wait for the default one.
    return to_status(driver.check(driver.stream_synchronize(nullptr), "copying to the device"));
  }
  runtime::Status copy_out(void* host, const void* from, size_t bytes) override {
    if (Status s = device_.make_current(); !s) return to_status(s);
    return to_status(device_.driver().check(
        device_.driver().copy_to_host(host, reinterpret_cast<uint64_t>(from), bytes), "copying from the device"));
  }
  runtime::Status zero(void* memory, size_t bytes, void* stream) override {
    if (Status s = device_.make_current(); !s) return to_status(s);
    return to_status(device_.driver().check(
        device_.driver().set_bytes(reinterpret_cast<uint64_t>(memory), 0, bytes, stream), "clearing a workspace"));
  }
  runtime::Status synchronise(void* stream) override {
    if (Status s = device_.make_current(); !s) return to_status(s);
    if (Status s = device_.driver().check(device_.driver().stream_synchronize(stream), "waiting for the kernel"); !s)
      return to_status(s);
    return reports_.read();
  }

 private:
  cuda::Device device_;
  Reports reports_;
};

}  // namespace

runtime::Failure to_failure(const Diagnostic& diagnostic) {
  return {static_cast<FailureCode>(static_cast<int32_t>(diagnostic.code)),  // the same numbers
          diagnostic.help.empty() ? diagnostic.message : diagnostic.message + ": " + diagnostic.help};
}

runtime::Status to_status(const Status& status) {
  if (!status) return std::unexpected(to_failure(status.error()));
  return {};
}

std::unique_ptr<runtime::Device> make_runtime_device(Device device, const ReportOptions& options) {
  return std::make_unique<CudaDevice>(std::move(device), options);
}

}  // namespace tilewright::cuda

namespace tilewright::runtime {

Result<std::unique_ptr<Device>> open_cuda(int ordinal, tw_print print, void* print_context) {
  auto device = cuda::Device::open(ordinal);
  if (!device) return std::unexpected(cuda::to_failure(device.error()));
  return cuda::make_runtime_device(std::move(*device), {print, print_context});
}

}  // namespace tilewright::runtime
