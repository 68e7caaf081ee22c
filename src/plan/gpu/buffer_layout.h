// Where a planned kernel keeps each tile: which register of which thread, or which byte of shared memory. For
// `emit --stage layout` and for tests; nothing is decided here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/tensor_map.h"
#include "plan/gpu/distribution.h"

namespace tilewright::plan::gpu {

/// Rows of a tile in shared memory. Linear: `pitch` elements apart. In panels: columns in blocks of `panel` elements,
/// each panel all rows, its 16-byte pieces permuted by `swizzle`.
struct SharedLayout {
  int64_t pitch = 0;
  int panel = 0;  ///< 0: linear
  Swizzle swizzle = Swizzle::None;
  int stages = 1;  ///< copies of the tile in a ring
};

struct BufferLayout {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::optional<Distribution> registers;  ///< else in shared memory
  SharedLayout shared;

  int64_t rows() const;
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  /// Bytes from the tile's start to an element, by row (all dimensions but the last) and column.
  int64_t byte_of(int64_t row, int64_t column) const;
};

/// The most of eight neighbouring rows that meet in one group of four banks when a matrix instruction reads the same 16
/// bytes of each, less one: 0 is free of conflicts.
int bank_conflicts(const BufferLayout& layout);

/// One line of description and a table of the tile's first rows and columns.
std::string to_text(const BufferLayout& layout);
/// A drawing: a cell per element (the first 64 × 64), coloured by warp or by bank.
std::string to_svg(const BufferLayout& layout);

}  // namespace tilewright::plan::gpu
