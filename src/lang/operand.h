// What an expression is while it is elaborated.
//
//   Static  known at compile time; a number adapts to the dtype it meets
//   Index   an i64 or bool index expression that is not constant
//   Scalar  an SSA value, always in its compute type (f16, bf16 and fp8 never appear here)
//   Tile    a region of a buffer, by reference; rank 0 is one element
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "base/dtype.h"
#include "ir/ir.h"

namespace tilewright::lang {

using StaticValue = std::variant<int64_t, double, bool, DType, std::string>;

/// `axes[i]` is the buffer dimension behind axis i of the region, or kBroadcast.
struct TileRef {
  static constexpr int kBroadcast = -1;
  ir::View view;
  std::vector<int> axes;

  int rank() const { return static_cast<int>(axes.size()); }
  const ir::Type& type() const { return view.buffer->type; }
  const ir::Slice& slice(int axis) const { return view.slices[static_cast<size_t>(axes[static_cast<size_t>(axis)])]; }
};

struct Operand {
  enum class Kind : uint8_t { Static, Index, Scalar, Tile };
  Kind kind = Kind::Static;
  StaticValue constant = int64_t{0};
  ir::Index index;
  bool index_is_bool = false;
  ir::Value* value = nullptr;
  TileRef tile;

  static Operand of(StaticValue v) { return {.constant = std::move(v)}; }
  static Operand of(ir::Value* v) { return {.kind = Kind::Scalar, .value = v}; }
  static Operand of(TileRef t) { return {.kind = Kind::Tile, .tile = std::move(t)}; }
  /// A constant index becomes Static.
  static Operand of_index(ir::Index x, bool is_bool = false);

  bool is_static() const { return kind == Kind::Static; }
  bool is_tile() const { return kind == Kind::Tile; }
  template <typename T>
  const T* as() const {
    return kind == Kind::Static ? std::get_if<T>(&constant) : nullptr;
  }
  /// An integer (not bool) that is Static or Index.
  bool is_index_like() const { return as<int64_t>() || (kind == Kind::Index && !index_is_bool); }
  bool is_bool_like() const;
};

/// "a tile f32[64, 64]", "the integer 3", "an f32 value" …
std::string describe(const Operand& operand);

}  // namespace tilewright::lang
