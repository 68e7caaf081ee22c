#include "driver/target_name.h"

#include <fmt/format.h>

#include <charconv>

#include "driver/cuda_call.h"

namespace tilewright::driver {

bool is_cuda_name(std::string_view name) { return name == "cuda" || name.starts_with("cuda:"); }

std::optional<int> device_number(std::string_view name) {
  if (name == "cuda") return 0;
  if (!name.starts_with("cuda:")) return std::nullopt;
  int number = -1;
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data() + 5, last, number);
  return error == std::errc() && end == last && number >= 0 ? std::optional(number) : std::nullopt;
}

Result<target::Cpu> cpu_named(std::string_view name) {
  if (name == "cpu") return target::host_cpu();
  if (const auto found = target::parse_cpu(std::string(name.starts_with("cpu:") ? name.substr(4) : name)))
    return *found;
  return fail(DiagnosticCode::E2502, fmt::format("unknown target '{}'", name),
              "targets are cpu (this machine), cpu:x86-64-v3, cpu:x86-64-v4, cuda, cuda:sm_80, cuda:sm_90a");
}

Result<target::Gpu> gpu_named(std::string_view name) {
  if (const auto number = device_number(name)) {
    const auto device = cuda::Device::open(*number);
    if (device) return gpu_facts(*device);
    Diagnostic diagnostic = device.error();
    diagnostic.help += fmt::format("{}code for a GPU that is not here is made for its architecture: cuda:sm_90a",
                                   diagnostic.help.empty() ? "" : "; ");
    return std::unexpected(std::move(diagnostic));
  }
  if (name.starts_with("cuda:")) {
    if (const auto named = target::parse_gpu(std::string(name.substr(5)))) return *named;
  }
  return fail(DiagnosticCode::E2502, fmt::format("unknown target '{}'", name),
              "targets are cuda and cuda:0 (a device of this machine), cuda:sm_80, cuda:sm_86, cuda:sm_89, cuda:sm_90, "
              "cuda:sm_90a");
}

}  // namespace tilewright::driver
