// The options every command on a `.tile` file shares: which kernel, which sizes, which parameters.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "driver/program.h"
#include "driver/target_name.h"

namespace tilewright::tools {

struct KernelOptions {
  std::string file;
  std::string kernel;
  std::vector<std::string> dims;    ///< "M=1000,N=777"
  std::vector<std::string> params;  ///< "block_M=64"
  std::vector<std::string> absent;  ///< optional tensors
  std::string target = "cpu";       ///< "cpu", "cpu:x86-64-v3"

  void add_to(CLI::App& app);
  Result<driver::KernelRequest> request() const;
  Result<tilewright::target::Cpu> cpu() const { return driver::cpu_named(target); }
  bool is_cuda() const { return driver::is_cuda_name(target); }
  Result<tilewright::target::Gpu> gpu() const { return driver::gpu_named(target); }
  /// Of this machine, when the target names one.
  std::optional<int> device_number() const { return driver::device_number(target); }
};

/// "A=a.npy" and comma-separated lists of such; E1804 names the piece that is not NAME=VALUE.
Result<std::map<std::string, std::string>> parse_assignments(const std::vector<std::string>& texts, const char* option);
Result<int64_t> parse_size(const std::string& name, const std::string& text);

}  // namespace tilewright::tools
