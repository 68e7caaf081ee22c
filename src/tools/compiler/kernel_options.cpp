#include "tools/compiler/kernel_options.h"

#include <fmt/format.h>

#include <charconv>

#include "driver/cuda_call.h"

namespace tilewright::tools {

void KernelOptions::add_to(CLI::App& app) {
  app.add_option("FILE", file, "A .tile file; - reads standard input")->required();
  app.add_option("--kernel", kernel, "Which kernel of the file (needed when it has several)");
  app.add_option("--dim", dims,
                 "Sizes: M=1000,N=777 (else those of the arrays a command is given, else the kernel's example)");
  app.add_option("--param", params, "Parameters: block_M=64,T=f16");
  app.add_option("--absent", absent, "Optional tensors the kernel is compiled without: bias,residual")->delimiter(',');
  app.add_option("--target", target,
                 "cpu, or a level: cpu:x86-64-v3, cpu:x86-64-v4; cuda (this machine's GPU), or an "
                 "architecture: cuda:sm_80, cuda:sm_90a")
      ->capture_default_str();
}

Result<std::map<std::string, std::string>> parse_assignments(const std::vector<std::string>& texts,
                                                             const char* option) {
  std::map<std::string, std::string> out;
  for (const std::string& text : texts) {
    size_t begin = 0;
    while (begin <= text.size()) {
      size_t end = text.find(',', begin);
      if (end == std::string::npos) end = text.size();
      const std::string piece = text.substr(begin, end - begin);
      const size_t equals = piece.find('=');
      if (equals == std::string::npos || equals == 0) {
        return fail(DiagnosticCode::E1804, fmt::format("{}: '{}' is not NAME=VALUE", option, piece),
                    fmt::format("write {} NAME=VALUE", option));
      }
      const auto [there, is_new] = out.emplace(piece.substr(0, equals), piece.substr(equals + 1));
      if (!is_new && there->second != piece.substr(equals + 1)) {
        return fail(
            DiagnosticCode::E1804,
            fmt::format("{} gives {} twice: {} and {}", option, there->first, there->second, piece.substr(equals + 1)),
            "give each name once");
      }
      begin = end + 1;
    }
  }
  return out;
}

Result<int64_t> parse_size(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    return fail(DiagnosticCode::E1804, fmt::format("--dim {}: {} is larger than 2^63 - 1", name, text),
                "sizes are 64-bit integers");
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(DiagnosticCode::E1804, fmt::format("--dim {}: '{}' is not a whole number", name, text),
                "write --dim M=1000,N=777");
  }
  return value;
}

Result<driver::KernelRequest> KernelOptions::request() const {
  driver::KernelRequest out{.path = file, .kernel = kernel};
  if (is_cuda()) out.target = lang::Target::Cuda;
  auto sizes = parse_assignments(dims, "--dim");
  if (!sizes) return std::unexpected(sizes.error());
  for (const auto& [name, text] : *sizes) {
    auto size = parse_size(name, text);
    if (!size) return std::unexpected(size.error());
    out.dims[name] = *size;
  }
  auto settings = parse_assignments(params, "--param");
  if (!settings) return std::unexpected(settings.error());
  out.params = std::move(*settings);
  out.absent.insert(absent.begin(), absent.end());
  return out;
}

std::optional<int> KernelOptions::device_number() const {
  if (target == "cuda") return 0;
  const bool is_number = target.size() == 6 && target.starts_with("cuda:") && target[5] >= '0' && target[5] <= '9';
  return is_number ? std::optional(target[5] - '0') : std::nullopt;
}

Result<tilewright::target::Gpu> KernelOptions::gpu() const {
  if (const auto number = device_number()) {
    const auto device = cuda::Device::open(*number);
    if (device) return driver::gpu_facts(*device);
    Diagnostic diagnostic = device.error();
    diagnostic.help += fmt::format("{}code for a GPU that is not here is made by naming it: --target cuda:sm_90a",
                                   diagnostic.help.empty() ? "" : "; ");
    return std::unexpected(std::move(diagnostic));
  }
  if (target.starts_with("cuda:")) {
    if (const auto named = tilewright::target::parse_gpu(target.substr(5))) return *named;
  }
  return fail(DiagnosticCode::E2502, fmt::format("unknown target '{}'", target),
              "targets are cuda and cuda:0 (a device of this machine), cuda:sm_80, cuda:sm_86, cuda:sm_89, cuda:sm_90, "
              "cuda:sm_90a");
}

Result<tilewright::target::Cpu> KernelOptions::cpu() const {
  if (target == "cpu") return tilewright::target::host_cpu();
  const std::string level = target.starts_with("cpu:") ? target.substr(4) : target;
  if (auto found = tilewright::target::parse_cpu(level)) return *found;
  return fail(DiagnosticCode::E2502, fmt::format("unknown target '{}'", target),
              "targets are cpu (this machine), cpu:x86-64-v3, cpu:x86-64-v4, cuda, cuda:sm_80, cuda:sm_90a");
}

}  // namespace tilewright::tools
