// The typed attributes of operations: one plain struct per row of ops.def that has any.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "ir/index.h"
#include "ir/type.h"

namespace tilewright::ir {

struct Value;

/// One dimension of a region: `start :+ extent`. A dropped dimension (`keep` false) has extent 1 and disappears from
/// the region's rank. Equal ranks and extents (after dropping) are required of the two sides of a copy.
struct Slice {
  Index start;
  Index extent;
  bool keep = true;
};

/// A rectangular region of a buffer, one Slice per dimension of the buffer.
struct View {
  Value* buffer = nullptr;
  std::vector<Slice> slices;

  /// Extents of the kept dimensions, in order.
  std::vector<Index> extents() const {
    std::vector<Index> out;
    for (const Slice& s : slices) {
      if (s.keep) out.push_back(s.extent);
    }
    return out;
  }
};

#define TW_ENUM_ENTRY(enumerator, text) enumerator,
#define TW_UNARY_OPS(X)                                                                                   \
  X(Neg, "neg")                                                                                           \
  X(Abs, "abs") X(Not, "not") X(Exp, "exp") X(Exp2, "exp2") X(Log, "log") X(Log2, "log2") X(Tanh, "tanh") \
      X(Erf, "erf") X(Sigmoid, "sigmoid") X(Rsqrt, "rsqrt") X(Sqrt, "sqrt") X(Sin, "sin") X(Cos, "cos")   \
          X(Floor, "floor") X(Ceil, "ceil") X(Round, "round") X(IsNan, "isnan") X(Bitcast, "bitcast")
#define TW_BINARY_OPS(X)                                                                                  \
  X(Add, "add")                                                                                           \
  X(Sub, "sub") X(Mul, "mul") X(Div, "div") X(FloorDiv, "floordiv") X(FloorMod, "floormod") X(Min, "min") \
      X(Max, "max") X(Pow, "pow") X(And, "and") X(Or, "or") X(Xor, "xor") X(Shl, "shl") X(Shr, "shr")
#define TW_COMPARE_OPS(X) X(Eq, "eq") X(Ne, "ne") X(Lt, "lt") X(Le, "le") X(Gt, "gt") X(Ge, "ge")
#define TW_REDUCE_KINDS(X)                                                                                      \
  X(Sum, "sum")                                                                                                 \
  X(Max, "max") X(Min, "min") X(Prod, "prod") X(AbsSum, "abssum") X(AbsMax, "absmax") X(And, "and") X(Or, "or") \
      X(Xor, "xor") X(Any, "any") X(All, "all")
#define TW_SCAN_KINDS(X) X(Sum, "sum") X(Prod, "prod") X(Max, "max")
#define TW_ATOMIC_KINDS(X) X(Add, "add") X(Max, "max") X(Min, "min") X(Or, "or")

enum class UnaryOp : uint8_t { TW_UNARY_OPS(TW_ENUM_ENTRY) };  ///< Round: to nearest, ties to even. Not: bool or bits.
enum class BinaryOp : uint8_t {
  TW_BINARY_OPS(TW_ENUM_ENTRY)
};  ///< Div: floats. Shl/Shr: count modulo width. Min/Max propagate NaN.
enum class CompareOp : uint8_t { TW_COMPARE_OPS(TW_ENUM_ENTRY) };
enum class ReduceKind : uint8_t {
  TW_REDUCE_KINDS(TW_ENUM_ENTRY)
};  ///< And/Or/Xor: bits or bool. Any/All: result bool.
enum class ScanKind : uint8_t { TW_SCAN_KINDS(TW_ENUM_ENTRY) };
enum class AtomicKind : uint8_t { TW_ATOMIC_KINDS(TW_ENUM_ENTRY) };

std::string_view name(UnaryOp op);
std::string_view name(BinaryOp op);
std::string_view name(CompareOp op);
std::string_view name(ReduceKind kind);
std::string_view name(ScanKind kind);
std::string_view name(AtomicKind kind);

struct NoAttributes {};

/// `extents` are block counts, the first varies fastest. `threads` counts compute threads (a hint on CPU).
struct GridAttributes {
  std::vector<Index> extents;
  int threads = 128;
  bool persistent = false;
  int group = 0;  ///< persistent: tiles of the first axis grouped for L2 reuse; 0 = the planner's choice
};

struct ForAttributes {
  Index lo;
  Index hi;
  Index step;
};

struct PipelinedAttributes {
  Index count;
  int stages = 2;
};

struct ParallelAttributes {
  std::vector<Index> extents;
};

/// The buffer's type is the result's type. `guarded`: out-of-bounds accesses are meant and not reported by `--check`.
struct AllocAttributes {
  bool guarded = false;
};

struct FillAttributes {
  View dst;
};

struct CopyAttributes {
  View src;
  View dst;
};

/// op(A) is M×K and op(B) is K×N after the transposes; C is M×N. accumulate = false overwrites C.
struct GemmAttributes {
  View a;
  View b;
  View c;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = true;
};

/// `dim` counts kept dimensions of src. dst has src's extents without `dim`. accumulate joins dst's old value in.
struct ReduceAttributes {
  ReduceKind kind = ReduceKind::Sum;
  View src;
  View dst;
  int dim = 0;
  bool accumulate = false;
};

struct ReduceArgAttributes {
  bool is_max = true;
  View src;
  View value;
  View index;
  int dim = 0;
};

struct ScanAttributes {
  ScanKind kind = ScanKind::Sum;
  View src;
  View dst;
  int dim = 0;
};

struct AtomicTileAttributes {
  AtomicKind kind = AtomicKind::Add;
  View src;
  View dst;
};

struct ArriveLastAttributes {
  View counter;
  Index n;
};

/// One element of a buffer; `guarded` comes from the buffer or an excluding `if`.
struct AccessAttributes {
  Value* buffer = nullptr;
  std::vector<Index> indices;
};

struct AtomicAttributes {
  AtomicKind kind = AtomicKind::Add;
  Value* buffer = nullptr;
  std::vector<Index> indices;
};

/// Floats (any width) in `real`, integers and bool in `integer` (u64 as its two's complement bits).
struct ConstantAttributes {
  double real = 0;
  int64_t integer = 0;
};

struct IndexAttributes {
  Index index;
};

struct UnaryAttributes {
  UnaryOp op = UnaryOp::Neg;
};

struct BinaryAttributes {
  BinaryOp op = BinaryOp::Add;
};

struct CompareAttributes {
  CompareOp op = CompareOp::Eq;
};

/// `id` indexes Kernel::texts.
struct TextAttributes {
  int id = 0;
};

/// `blocks`: the extents of the launch over slots; the region has one i64 argument per extent.
struct FuncAttributes {
  std::string symbol;
  std::vector<Index> blocks;
  int threads = 1;
  int64_t scratch_bytes = 0;
};

struct SlotAttributes {
  int number = 0;
};

struct OffsetAttributes {
  Index bytes;
};

/// Storage dtype in memory; `bytes` is added to the pointer operand. `align` in bytes. `streaming`: do not keep in
/// cache.
struct MemoryAttributes {
  DType storage = DType::F32;
  Index bytes;
  int align = 1;
  bool streaming = false;
};

struct LaneAttributes {
  int lane = 0;
};

struct ShuffleAttributes {
  std::vector<int> lanes;
};

struct ReduceLanesAttributes {
  ReduceKind kind = ReduceKind::Sum;
};

struct AtomicMemoryAttributes {
  AtomicKind kind = AtomicKind::Add;
  DType storage = DType::I32;
};

using Attributes =
    std::variant<NoAttributes, GridAttributes, ForAttributes, PipelinedAttributes, ParallelAttributes, AllocAttributes,
                 FillAttributes, CopyAttributes, GemmAttributes, ReduceAttributes, ReduceArgAttributes, ScanAttributes,
                 AtomicTileAttributes, ArriveLastAttributes, AccessAttributes, AtomicAttributes, ConstantAttributes,
                 IndexAttributes, UnaryAttributes, BinaryAttributes, CompareAttributes, TextAttributes, FuncAttributes,
                 SlotAttributes, OffsetAttributes, MemoryAttributes, LaneAttributes, ShuffleAttributes,
                 ReduceLanesAttributes, AtomicMemoryAttributes>;

}  // namespace tilewright::ir
