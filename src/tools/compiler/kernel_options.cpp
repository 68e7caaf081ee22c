#include "tools/compiler/kernel_options.h"

#include <fmt/format.h>

#include <charconv>

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

}  // namespace tilewright::tools
