#include "plan/gpu/roofline.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::plan::gpu {
namespace {

/// Elements of a region, or 0 when its extents are not known.
double elements(const ir::View& view) {
  double n = 1;
  for (const ir::Index& x : view.extents()) n *= static_cast<double>(x.constant().value_or(0));
  return n;
}

struct Loop {
  double flops = 0, bytes = 0;
  const ir::Op* product = nullptr;
};

void visit(const ir::Region& region, std::vector<Loop>& out) {
  Loop here;
  for (const ir::Op* op : region.ops) {
    if (op->kind == ir::OpKind::Gemm) {
      const auto& a = op->as<ir::GemmAttributes>();
      const auto inner = a.a.extents();
      if (inner.size() == 2)
        here.flops += 2 * elements(a.c) * static_cast<double>(inner[a.transpose_a ? 0 : 1].constant().value_or(0));
      here.product = op;
    }
    if (op->kind == ir::OpKind::Copy) {
      const auto& a = op->as<ir::CopyAttributes>();
      if (a.src.buffer->type.space == ir::MemorySpace::Global)
        here.bytes += elements(a.src) * bytes(a.src.buffer->type.dtype);
    }
    for (const ir::Region* inner : op->regions) visit(*inner, out);
  }
  if (here.product) out.push_back(here);
}

}  // namespace

std::vector<Fact> roofline_facts(const ir::Kernel& tile, const target::Gpu& gpu) {
  std::vector<Loop> loops;
  visit(*tile.body, loops);
  if (loops.empty())
    return {{"roofline", fmt::format("no product: bound by memory, at most {:.0f} GB/s", gpu.bandwidth_gbs), {}}};
  std::vector<Fact> out;
  const double balance = gpu.tensor_tflops * 1e3 / gpu.bandwidth_gbs;
  for (const Loop& loop : loops) {
    if (loop.bytes == 0) continue;
    const double intensity = loop.flops / loop.bytes;
    const bool computes = intensity >= balance;
    out.push_back(
        {"roofline",
         fmt::format("{:.0f} flop a byte loaded, the balance is {:.0f} (16-bit products): bound by {}, at most "
                     "{:.0f} TFLOP/s before reuse in L2",
                     intensity, balance, computes ? "the matrix units" : "memory",
                     computes ? gpu.tensor_tflops : intensity * gpu.bandwidth_gbs / 1e3),
         loop.product->location});
  }
  return out;
}

Occupancy occupancy(const target::Gpu& gpu, int threads, int registers, int shared_bytes) {
  constexpr int kMostThreads = 2048, kMostBlocks = 32, kReserved = 1024;
  const int warps = (threads + 31) / 32;
  // Registers are granted to a warp in units of 256, to four warps at a time.
  const int a_warp = (registers * 32 + 255) / 256 * 256;
  const int by_registers = gpu.registers_per_multiprocessor / std::max(1, a_warp * ((warps + 3) / 4 * 4));
  const int by_shared = gpu.shared_bytes_per_multiprocessor / (shared_bytes + kReserved);
  const int by_threads = std::min(kMostThreads / std::max(1, warps * 32), kMostBlocks);
  Occupancy out = {by_threads, "threads"};
  if (by_registers < out.blocks) out = {by_registers, "registers"};
  if (by_shared < out.blocks) out = {by_shared, "shared memory"};
  return out;
}

}  // namespace tilewright::plan::gpu
