#include "plan/cpu/register_tile.h"

#include <algorithm>

namespace tilewright::plan::cpu {
namespace {

constexpr double kTypicalDepth = 256;
constexpr double kFmaLatency = 4;
constexpr double kLoadShare = 0.1;    ///< cycles a load takes from the multiplications beside it
constexpr double kTileOverhead = 24;  ///< cycles to set up pointers and fill the pipeline

double ceil_div(int64_t n, int64_t d) { return static_cast<double>((n + d - 1) / d); }

double cost(const RegisterTile& t, int64_t rows, int64_t columns) {
  const double tiles = ceil_div(rows, t.rows) * ceil_div(columns, t.columns());
  const double fmas = t.rows * t.vectors / 2.0, loads = (t.rows + t.vectors) / 2.0;
  const double step = std::max({fmas, loads, kFmaLatency}) + kLoadShare * loads;
  return tiles * (step * kTypicalDepth + 2.0 * t.rows * t.vectors + kTileOverhead);
}

}  // namespace

RegisterTile choose_register_tile(const target::Cpu& cpu, int64_t rows, int64_t columns, DType compute) {
  RegisterTile best;
  double best_cost = 1e300;
  const int lanes = cpu.vector_bits / bits(compute);
  for (const int vectors : {4, 2, 1, 3, 6, 8}) {
    // A quarter of the registers is for the factors: with fewer, the code generator spills sums.
    const int most_rows = cpu.vector_registers * 3 / 4 / vectors;
    for (int r = std::min(most_rows, 14); r >= 1; --r) {
      const RegisterTile t{r, vectors, lanes};
      const double c = cost(t, rows, columns);
      if (c < best_cost * 0.9999) best_cost = c, best = t;
    }
  }
  return best;
}

int64_t choose_depth_block(const target::Cpu& cpu, const RegisterTile& tile, DType compute) {
  const int64_t panel_row = int64_t{tile.columns()} * bytes(compute);
  const int64_t resident = cpu.l1_bytes * 3 / 4 / panel_row / 64 * 64,
                streamed = cpu.l2_bytes / 16 / panel_row / 64 * 64;
  return resident >= 256 ? std::min<int64_t>(resident, 512) : std::clamp<int64_t>(streamed, 192, 512);
}

}  // namespace tilewright::plan::cpu
