// Facts of an NVIDIA GPU that planning relies on, by architecture name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tilewright::target {

struct Gpu {
  std::string name;         ///< "sm_90a"
  int architecture = 80;    ///< 90
  bool has_hopper = false;  ///< sm_90a: copy engine, wgmma, register reallocation
  int multiprocessors = 108;
  int shared_bytes_per_block = 163 << 10;  ///< opt-in limit
  int shared_bytes_per_multiprocessor = 164 << 10;
  int registers_per_multiprocessor = 64 << 10;
  double tensor_tflops = 312;  ///< dense bf16, by the vendor's data sheet
  double bandwidth_gbs = 2039;
};

/// "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"; nothing for another name.
std::optional<Gpu> parse_gpu(std::string_view name);
/// The row for a device of this architecture, with what was read off the device filled in.
std::optional<Gpu> gpu_of(int architecture, int multiprocessors, int shared_bytes_per_block);

}  // namespace tilewright::target
