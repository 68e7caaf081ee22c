#include "target/cpu_dot.h"

#include <algorithm>

namespace tilewright::target {
namespace {

constexpr CpuDot kRows[] = {
#define TW_CPU_DOT(name, a, b, terms, feature) {name, DType::a, DType::b, terms, feature},
#include "target/cpu_dot.def"
#undef TW_CPU_DOT
};

}  // namespace

std::span<const CpuDot> cpu_dots() { return kRows; }

const CpuDot* choose_dot(const Cpu& cpu) {
  for (const CpuDot& row : kRows) {
    if (std::ranges::find(cpu.features, row.feature) != cpu.features.end()) return &row;
  }
  return nullptr;
}

int32_t dot_lane(std::span<const int64_t> a, std::span<const int64_t> b, int32_t sum) {
  auto total = static_cast<uint64_t>(static_cast<int64_t>(sum));
  for (size_t i = 0; i < a.size(); ++i) total += static_cast<uint64_t>(a[i] * b[i]);
  return static_cast<int32_t>(static_cast<uint32_t>(total));
}

}  // namespace tilewright::target
