// What bounds a kernel on a GPU, from its tiles alone: floating-point work per byte that each product loop loads,
// against what the GPU computes per byte of its memory. Reuse in caches is not counted. For --explain.
#pragma once

#include <vector>

#include "plan/gpu/plan.h"

namespace tilewright::plan::gpu {

/// One fact per product, or one that says there is none.
std::vector<Fact> roofline_facts(const ir::Kernel& tile, const target::Gpu& gpu);

/// Blocks of a program that fit one multiprocessor, and what limits them.
struct Occupancy {
  int blocks = 0;
  const char* limit = "";
};
Occupancy occupancy(const target::Gpu& gpu, int threads, int registers, int shared_bytes);

}  // namespace tilewright::plan::gpu
