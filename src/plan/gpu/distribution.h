// Which thread and register hold which element of a tile.
//
// An element's coordinate along every dimension is (a constant of the register) + (a sum over digits of the thread
// index). Digits are mixed radix, least significant first: lanes are powers of two, the last digit may be any count
// (two or three warpgroups). A digit that moves no dimension replicates. When `covers` exceeds the shape, elements past
// it exist in registers and must be masked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::plan::gpu {

struct Distribution {
  struct Digit {
    int extent = 1;
    int dim = -1;  ///< -1: replicated
    int stride = 0;
    friend bool operator==(const Digit&, const Digit&) = default;
  };
  std::vector<int64_t> shape;
  std::vector<std::vector<int>> registers;  ///< offsets by dimension
  std::vector<Digit> digits;

  int rank() const { return static_cast<int>(shape.size()); }
  int threads() const;
  /// Offset of thread `t` along `dim`.
  int thread_offset(int t, int dim) const;
  /// One past the largest coordinate along `dim` any thread and register holds.
  int64_t covers(int dim) const;
  bool is_exact() const;
  /// Register with these offsets, or -1.
  int find(const std::vector<int>& offsets) const;
  friend bool operator==(const Distribution&, const Distribution&) = default;
};

/// Rows over threads, `vector` neighbouring columns a register run; any shape, any power-of-two thread count
/// times 1..4.
Distribution row_major(std::vector<int64_t> shape, int threads, int vector);
/// `d` without dimension `dim`: threads along it become replicas, registers that differ only in it become one.
Distribution slice(const Distribution& d, int dim);
/// Accumulators of wgmma: `warpgroups` × `sites` of 64 rows, n columns each.
Distribution wgmma_accumulator(int64_t m, int64_t n, int warpgroups);
/// Accumulators of mma.sync m16n8: `warps_m` × `warps_n` warps, each a contiguous rectangle.
Distribution mma_accumulator(int64_t m, int64_t n, int warps_m, int warps_n);
/// The same for m8n8 of f64: two neighbouring columns a lane in every 8x8 site.
Distribution mma_accumulator_f64(int64_t m, int64_t n, int warps_m, int warps_n);
/// "[128, 64] over 256 threads, 32 registers: lane%4 → dim 1 ×2 …", for --explain.
std::string to_text(const Distribution& d);

}  // namespace tilewright::plan::gpu
