#include "target/gpu.h"

#include <vector>

namespace tilewright::target {
namespace {

// Figures of A100, A10, L4/L40, H100/H200; multiprocessors and limits are replaced by the device's own where there is
// one.
const std::vector<Gpu>& rows() {
  static const std::vector<Gpu> table = {
      {"sm_80", 80, false, 108, 163 << 10, 164 << 10, 64 << 10, 312, 2039},
      {"sm_86", 86, false, 72, 99 << 10, 100 << 10, 64 << 10, 125, 600},
      {"sm_89", 89, false, 142, 99 << 10, 100 << 10, 64 << 10, 362, 864},
      {"sm_90", 90, false, 132, 227 << 10, 228 << 10, 64 << 10, 989, 4800},
      {"sm_90a", 90, true, 132, 227 << 10, 228 << 10, 64 << 10, 989, 4800},
  };
  return table;
}

}  // namespace

std::optional<Gpu> parse_gpu(std::string_view name) {
  for (const Gpu& row : rows())
    if (row.name == name) return row;
  return std::nullopt;
}

std::optional<Gpu> gpu_of(int architecture, int multiprocessors, int shared_bytes_per_block) {
  std::optional<Gpu> best;
  for (const Gpu& row : rows())
    if (row.architecture <= architecture && (!row.has_hopper || architecture == 90)) best = row;
  if (best) {
    best->multiprocessors = multiprocessors;
    best->shared_bytes_per_block = shared_bytes_per_block;
  }
  return best;
}

}  // namespace tilewright::target
