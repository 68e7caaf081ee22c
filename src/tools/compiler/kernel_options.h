// The options every command on a `.tile` file shares: which kernel, which sizes, which parameters.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "driver/program.h"
#include "target/cpu.h"
#include "target/gpu.h"

namespace tilewright::tools {

struct KernelOptions {
  std::string file;
  std::string kernel;
  std::vector<std::string> dims;    ///< "M=1000,N=777"
  std::vector<std::string> params;  ///< "block_M=64"
  std::string target = "cpu";       ///< "cpu", "cpu:x86-64-v3"

  void add_to(CLI::App& app);
  Result<driver::KernelRequest> request() const;
  Result<tilewright::target::Cpu> cpu() const;
  bool is_cuda() const { return target == "cuda" || target.starts_with("cuda:"); }
  /// The GPU of `cuda:sm_90a`; plain `cuda` and `cuda:0` name a device and give nothing here.
  std::optional<tilewright::target::Gpu> gpu() const;
};

/// "A=a.npy" and comma-separated lists of such; E1804 names the piece that is not NAME=VALUE.
Result<std::map<std::string, std::string>> parse_assignments(const std::vector<std::string>& texts, const char* option);
Result<int64_t> parse_size(const std::string& name, const std::string& text);

}  // namespace tilewright::tools
