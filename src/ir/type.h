// Types of SSA values.
//
//   Scalar   one element (lanes = 1) or a vector of `lanes` elements (low-level phases only)
//   Buffer   a mutable rectangle of memory in a memory space; the value names the buffer
//   Tile     an immutable tile value (promoted fragments), shape static
//   Pointer  a byte address in a memory space (low-level phases only)
//   Token    the handle of an asynchronous operation
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "ir/index.h"

namespace tilewright::ir {

enum class TypeKind : uint8_t { Scalar, Buffer, Tile, Pointer, Token };

/// global: kernel arguments and workspaces · shared, fragment: tiles of a block · local: private to one `parallel`
/// iteration · var: scalars · scratch: a CPU task's memory, addressed by offset (low-level phases).
enum class MemorySpace : uint8_t { Global, Shared, Fragment, Local, Var, Scratch };

struct Type {
  TypeKind kind = TypeKind::Scalar;
  DType dtype = DType::F32;
  int lanes = 1;                            ///< Scalar
  MemorySpace space = MemorySpace::Global;  ///< Buffer, Pointer
  std::vector<Index> shape;                 ///< Buffer, Tile; constant everywhere but in global memory

  static Type scalar(DType dtype, int lanes = 1) { return {.kind = TypeKind::Scalar, .dtype = dtype, .lanes = lanes}; }
  static Type buffer(MemorySpace space, DType dtype, std::vector<Index> shape) {
    return {.kind = TypeKind::Buffer, .dtype = dtype, .space = space, .shape = std::move(shape)};
  }
  static Type pointer(MemorySpace space) { return {.kind = TypeKind::Pointer, .dtype = DType::U8, .space = space}; }
  static Type token() { return {.kind = TypeKind::Token}; }

  bool is_scalar() const { return kind == TypeKind::Scalar && lanes == 1; }
  bool is_vector() const { return kind == TypeKind::Scalar && lanes > 1; }
  bool is_buffer() const { return kind == TypeKind::Buffer; }
  int rank() const { return static_cast<int>(shape.size()); }
};

std::string_view name(MemorySpace space);

}  // namespace tilewright::ir
