#include "target/cpu.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

namespace tilewright::target {
namespace {

struct FeatureRow {
  const char* llvm_name;
  bool host_has;
  int level;
};

std::vector<FeatureRow> feature_rows() {
  __builtin_cpu_init();
  return {
#define TW_CPU_FEATURE(llvm_name, builtin_name, level) {llvm_name, __builtin_cpu_supports(builtin_name) != 0, level},
#include "target/cpu_features.def"
#undef TW_CPU_FEATURE
  };
}

bool has(const Cpu& cpu, std::string_view feature) {
  return std::find(cpu.features.begin(), cpu.features.end(), feature) != cpu.features.end();
}

/// Everything that follows from the feature list.
Cpu derive(Cpu cpu) {
  const bool wide = has(cpu, "avx512f") && has(cpu, "avx512bw") && has(cpu, "avx512vl") && has(cpu, "avx512dq");
  const bool avx2 = has(cpu, "avx2");
  cpu.vector_bits = wide ? 512 : avx2 ? 256 : 128;
  cpu.vector_registers = wide ? 32 : 16;
  cpu.has_mask_registers = wide;
  cpu.has_fma = has(cpu, "fma");
  cpu.has_f16c = has(cpu, "f16c");
  cpu.has_vnni = has(cpu, "avx512vnni") && wide;
  return cpu;
}

int64_t positive_or(long value, int64_t otherwise) { return value > 0 ? value : otherwise; }

}  // namespace

Cpu host_cpu() {
  Cpu cpu;
  cpu.name = "host";
  for (const FeatureRow& row : feature_rows()) {
    if (row.host_has) cpu.features.emplace_back(row.llvm_name);
  }
  cpu.l1_bytes = positive_or(sysconf(_SC_LEVEL1_DCACHE_SIZE), cpu.l1_bytes);
  cpu.l2_bytes = positive_or(sysconf(_SC_LEVEL2_CACHE_SIZE), cpu.l2_bytes);
  cpu.l3_bytes = positive_or(sysconf(_SC_LEVEL3_CACHE_SIZE), cpu.l3_bytes);
  cpu.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return derive(std::move(cpu));
}

std::optional<Cpu> parse_cpu(std::string_view name) {
  if (name == "host") return host_cpu();
  static constexpr std::string_view kNames[] = {"", "", "", "x86-64-v3", "x86-64-v4"};
  for (int level = 3; level <= 4; ++level) {
    if (name != kNames[level]) continue;
    Cpu cpu;
    cpu.name = name;
    for (const FeatureRow& row : feature_rows()) {
      if (row.level <= level) cpu.features.emplace_back(row.llvm_name);
    }
    cpu.cores = 2;
    return derive(std::move(cpu));
  }
  return std::nullopt;
}

}  // namespace tilewright::target
