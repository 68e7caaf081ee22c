#include "plan/gpu/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tilewright::plan::gpu {

int Distribution::threads() const {
  int n = 1;
  for (const Digit& d : digits) n *= d.extent;
  return n;
}

int Distribution::thread_offset(int t, int dim) const {
  int offset = 0;
  for (const Digit& d : digits) {
    if (d.dim == dim) offset += t % d.extent * d.stride;
    t /= d.extent;
  }
  return offset;
}

int64_t Distribution::covers(int dim) const {
  int64_t last = 0;
  for (const auto& r : registers) last = std::max<int64_t>(last, r[static_cast<size_t>(dim)]);
  for (const Digit& d : digits)
    if (d.dim == dim) last += int64_t{d.extent - 1} * d.stride;
  return last + 1;
}

bool Distribution::is_exact() const {
  for (int d = 0; d < rank(); ++d)
    if (covers(d) > shape[static_cast<size_t>(d)]) return false;
  return true;
}

int Distribution::find(const std::vector<int>& offsets) const {
  const auto it = std::find(registers.begin(), registers.end(), offsets);
  return it == registers.end() ? -1 : static_cast<int>(it - registers.begin());
}

Distribution row_major(std::vector<int64_t> shape, int threads, int vector) {
  Distribution d;
  const size_t rank = shape.size();
  d.shape = shape;
  if (rank == 0) {
    d.digits = {{threads, -1, 0}};
    d.registers = {{}};
    return d;
  }
  const auto columns = shape[rank - 1];
  while (vector > 1 && columns % vector) vector /= 2;
  const int whole = threads & -threads;  // the power-of-two part
  const auto wanted = std::bit_ceil(static_cast<uint64_t>((columns + vector - 1) / vector));
  const int along_columns = static_cast<int>(std::min<uint64_t>(wanted, static_cast<uint64_t>(whole)));
  const int along_rows = threads / along_columns;
  const int last = static_cast<int>(rank) - 1;
  d.digits.push_back({along_columns, last, vector});
  if (along_rows > 1) d.digits.push_back({along_rows, rank > 1 ? last - 1 : -1, rank > 1 ? 1 : 0});
  const int64_t column_step = int64_t{along_columns} * vector;
  std::vector<std::vector<int>> offsets(rank);
  for (size_t dim = 0; dim + 2 < rank; ++dim)
    for (int64_t x = 0; x < shape[dim]; ++x) offsets[dim].push_back(static_cast<int>(x));
  if (rank > 1)
    for (int64_t x = 0; x < shape[rank - 2]; x += along_rows) offsets[rank - 2].push_back(static_cast<int>(x));
  for (int64_t x = 0; x < columns; x += column_step)
    for (int v = 0; v < vector; ++v) offsets[rank - 1].push_back(static_cast<int>(x) + v);
  std::vector<size_t> at(rank, 0);
  for (;;) {
    std::vector<int> r(rank);
    for (size_t k = 0; k < rank; ++k) r[k] = offsets[k][at[k]];
    d.registers.push_back(std::move(r));
    size_t k = rank;
    while (k > 0 && ++at[k - 1] == offsets[k - 1].size()) at[--k] = 0;
    if (k == 0) return d;
  }
}

Distribution slice(const Distribution& d, int dim) {
  Distribution out;
  for (int k = 0; k < d.rank(); ++k)
    if (k != dim) out.shape.push_back(d.shape[static_cast<size_t>(k)]);
  for (Distribution::Digit digit : d.digits) {
    if (digit.dim == dim)
      digit = {digit.extent, -1, 0};
    else if (digit.dim > dim)
      --digit.dim;
    out.digits.push_back(digit);
  }
  for (std::vector<int> r : d.registers) {
    r.erase(r.begin() + dim);
    if (out.find(r) < 0) out.registers.push_back(std::move(r));
  }
  return out;
}

Distribution wgmma_accumulator(int64_t m, int64_t n, int warpgroups) {
  Distribution d;
  d.shape = {m, n};
  const auto rows = static_cast<int>(m / warpgroups);
  d.digits = {{4, 1, 2}, {8, 0, 1}, {4, 0, 16}};
  if (warpgroups > 1) d.digits.push_back({warpgroups, 0, rows});
  for (int site = 0; site < rows; site += 64)
    for (int column = 0; column < n; column += 8)
      for (int i = 0; i < 4; ++i) d.registers.push_back({site + 8 * (i >> 1), column + (i & 1)});
  return d;
}

Distribution mma_accumulator(int64_t m, int64_t n, int warps_m, int warps_n) {
  Distribution d;
  d.shape = {m, n};
  const auto rows = static_cast<int>(m / warps_m), columns = static_cast<int>(n / warps_n);
  d.digits = {{4, 1, 2}, {8, 0, 1}};
  if (warps_m > 1) d.digits.push_back({warps_m, 0, rows});
  if (warps_n > 1) d.digits.push_back({warps_n, 1, columns});
  for (int row = 0; row < rows; row += 16)
    for (int column = 0; column < columns; column += 8)
      for (int i = 0; i < 4; ++i) d.registers.push_back({row + 8 * (i >> 1), column + (i & 1)});
  return d;
}

Distribution mma_accumulator_f64(int64_t m, int64_t n, int warps_m, int warps_n) {
  Distribution d = mma_accumulator(m, n, warps_m, warps_n);
  d.registers.clear();
  for (int row = 0; row < m / warps_m; row += 8)
    for (int column = 0; column < n / warps_n; column += 8)
      for (int e = 0; e < 2; ++e) d.registers.push_back({row, column + e});
  return d;
}

std::string to_text(const Distribution& d) {
  std::string out = "[";
  for (size_t i = 0; i < d.shape.size(); ++i) out += fmt::format("{}{}", i ? ", " : "", d.shape[i]);
  out += fmt::format("] over {} threads, {} registers; thread digits:", d.threads(), d.registers.size());
  for (const auto& digit : d.digits)
    out += digit.dim < 0 ? fmt::format(" {}:copy", digit.extent)
                         : fmt::format(" {}:dim{}x{}", digit.extent, digit.dim, digit.stride);
  return out;
}

}  // namespace tilewright::plan::gpu
