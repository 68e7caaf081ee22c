#include "runtime/cpu_features.h"

#include <string_view>

namespace tilewright::runtime {
namespace {

/// LLVM's names of what code may be compiled for. `__builtin_cpu_supports` wants literals.
bool has_feature(std::string_view name) {
#if defined(__x86_64__)
#define TW_CPU_FEATURE(feature) \
  if (name == feature) return __builtin_cpu_supports(feature);
  TW_CPU_FEATURE("sse3")
  TW_CPU_FEATURE("ssse3")
  TW_CPU_FEATURE("sse4.1")
  TW_CPU_FEATURE("sse4.2")
  TW_CPU_FEATURE("popcnt")
  TW_CPU_FEATURE("avx")
  TW_CPU_FEATURE("avx2")
  TW_CPU_FEATURE("fma")
  TW_CPU_FEATURE("f16c")
  TW_CPU_FEATURE("bmi")
  TW_CPU_FEATURE("bmi2")
  TW_CPU_FEATURE("lzcnt")
  TW_CPU_FEATURE("movbe")
  TW_CPU_FEATURE("avx512f")
  TW_CPU_FEATURE("avx512bw")
  TW_CPU_FEATURE("avx512cd")
  TW_CPU_FEATURE("avx512dq")
  TW_CPU_FEATURE("avx512vl")
  TW_CPU_FEATURE("avx512vnni")
  TW_CPU_FEATURE("avx512bf16")
#undef TW_CPU_FEATURE
  if (name == "sse" || name == "sse2") return true;
#endif
  static_cast<void>(name);
  return false;
}

}  // namespace

Status check_cpu_features(std::span<const std::string> names) {
  std::string missing;
  for (const std::string& name : names) {
    if (!has_feature(name)) missing += (missing.empty() ? "" : ", ") + name;
  }
  if (missing.empty()) return {};
  return fail(FailureCode::missing_cpu_feature, "the kernel was compiled for instructions this CPU lacks: " + missing);
}

}  // namespace tilewright::runtime
