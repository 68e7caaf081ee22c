// Facts of a CPU that planning and code generation rely on: vector width, registers, instructions, caches.
//
// Guarantees: a pure value; `host_cpu()` reads the machine once per call and never fails (unknown cache sizes take the
// conservative figures of the table). Does not do: timing; topology beyond the number of cores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/dtype.h"

namespace tilewright::target {

struct Cpu {
  std::string name = "x86-64";  ///< "x86-64-v3", "x86-64-v4", "host"
  int vector_bits = 128;
  int vector_registers = 16;
  bool has_fma = false;
  bool has_f16c = false;
  bool has_mask_registers = false;  ///< AVX-512: masked memory operations cost nothing extra
  bool has_vnni = false;            ///< u8·s8 dot products into i32, four at a time
  int64_t l1_bytes = 32 << 10;      ///< data, per core
  int64_t l2_bytes = 512 << 10;     ///< per core
  int64_t l3_bytes = 16 << 20;      ///< shared
  int cores = 1;
  std::vector<std::string> features;  ///< LLVM's names, beyond the x86-64 baseline, in the order of cpu_features.def

  int lanes(DType dtype) const { return vector_bits / bits(dtype); }
};

/// The machine this runs on.
Cpu host_cpu();

/// "x86-64-v3", "x86-64-v4" or "host"; nothing for another name. Processors without AVX2 and FMA are not served.
std::optional<Cpu> parse_cpu(std::string_view name);

}  // namespace tilewright::target
