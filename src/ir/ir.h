// The intermediate representation: values, operations, regions, kernels.
//
// A Kernel owns everything reachable from it (values, operations, regions, index expressions) and is one instantiated
// kernel for one target: parameters, `fn`, `import` and compile-time `if` are already gone. Identity is the object,
// never its name; names and locations do not take part in equality (`equal`) or keys (`content_key`).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/hash.h"
#include "ir/attributes.h"
#include "ir/hints.h"
#include "ir/index.h"
#include "ir/type.h"

namespace tilewright::ir {

enum class OpKind : uint16_t {
#define TW_OP(kind, mnemonic, attributes, traits, phases, text) kind,
#include "ir/ops.def"
#undef TW_OP
};

enum OpTraits : uint32_t { kNone = 0, kPure = 1, kReads = 2, kWrites = 4, kSyncs = 8, kTerminator = 16, kRegions = 32 };
enum class Phase : uint8_t { Tile, Planned, Vector, Thread };
enum PhaseSet : uint32_t { kTile = 1, kPlanned = 2, kVector = 4, kThread = 8 };

/// One row of ops.def.
struct OpInfo {
  OpKind kind;
  std::string_view mnemonic;
  uint32_t traits;
  uint32_t phases;
  std::string_view text;
  bool is_legal_in(Phase phase) const { return phases >> static_cast<int>(phase) & 1; }
};
const OpInfo& info(OpKind kind);
std::optional<OpKind> parse_op_kind(std::string_view mnemonic);

struct Op;
struct Region;

/// An SSA value: the result of an operation, an argument of a region, or (both null) an argument of the kernel.
struct Value {
  uint32_t id = 0;  ///< creation order within the kernel
  Type type;
  std::string name;  ///< for people; not identity
  Op* def = nullptr;
  Region* owner = nullptr;
};

struct Region {
  std::vector<Value*> arguments;
  std::vector<Op*> ops;
  Op* parent = nullptr;
};

struct Op {
  OpKind kind = OpKind::Yield;
  Location location;
  std::vector<Value*> operands;
  std::vector<Value*> results;
  Attributes attributes;
  std::vector<Region*> regions;
  Hints hints = {};  ///< part of equality and keys; never of meaning

  template <typename T>
  const T& as() const {
    return std::get<T>(attributes);
  }
  template <typename T>
  T& as() {
    return std::get<T>(attributes);
  }
  Value* result() const { return results.empty() ? nullptr : results[0]; }
};

enum class Direction : uint8_t { In, Out, InOut, Workspace };

/// A named extent. `constant` when the shape class fixes it (a dimension used in a tile's shape).
struct Dimension {
  std::string name;
  Value* value = nullptr;  ///< i64
  std::optional<int64_t> constant;
};

/// A tensor argument. Extents are expressions over dimension values; an extent that is a bare dimension binds it at
/// first sight, every other occurrence is a check. Strides are run-time facts of the shape class (unit inner stride is
/// the fast class).
struct TensorArgument {
  Value* buffer = nullptr;  ///< Buffer in Global space; its type carries dtype and shape
  Direction direction = Direction::In;
  bool optional = false;
  bool guarded = false;
  Location location;
};

struct ScalarArgument {
  Value* value = nullptr;
  std::optional<ConstantAttributes> default_value;
  Location location;
};

/// A `where` line over dimensions: checked when the kernel is called.
struct Requirement {
  Index condition;
  std::string text;
  Location location;
};

/// What an assert or print says, kept out of the operations so that it does not enter keys.
struct Text {
  std::string text;
  Location location;
};

class Kernel {
 public:
  Kernel();
  Kernel(Kernel&&) noexcept = default;
  Kernel& operator=(Kernel&&) noexcept = default;

  std::string name;
  Phase phase = Phase::Tile;
  std::vector<Dimension> dimensions;
  std::vector<TensorArgument> tensors;
  std::vector<ScalarArgument> scalars;
  std::vector<Requirement> requirements;
  /// Pairs of positions in `tensors` that may overlap although neither is `inout`.
  std::vector<std::pair<int, int>> aliases;
  std::vector<Text> texts;
  /// Vector and thread phases: the i64 value of every slot of the launch recipe, by position. Kernel-level like a
  /// dimension: index expressions (FuncAttributes::blocks too) use them directly, without a `slot` operation.
  std::vector<Value*> slots;
  Region* body = nullptr;

  IndexContext& indices() const { return *indices_; }
  Value* new_value(Type type, std::string value_name = {});
  Op* new_op(OpKind kind, Location location);
  Region* new_region(Op* parent);

  /// The tensor argument whose buffer is `buffer`, or -1.
  int tensor_position(const Value* buffer) const;

 private:
  std::unique_ptr<IndexContext> indices_;
  std::unique_ptr<std::deque<Value>> values_;
  std::unique_ptr<std::deque<Op>> ops_;
  std::unique_ptr<std::deque<Region>> regions_;
};

/// A deep copy; values keep their order and names.
Kernel clone(const Kernel& kernel);

/// Structural equality without names and locations.
bool equal(const Kernel& x, const Kernel& y);

/// A pure function of content (the canonical text without names, locations and texts).
Key128 content_key(const Kernel& kernel);

/// Calls `visit` for every operation below `region`, outermost first, in program order.
void for_each_op(const Region& region, const std::function<void(Op&)>& visit);

}  // namespace tilewright::ir
