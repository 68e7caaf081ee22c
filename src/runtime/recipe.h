// The launch recipe: everything but the code that it takes to run a kernel of one shape class. Plain values.
//
// The compiler fills it, the run-time library evaluates it, and it travels inside an artefact (artefact.h). It says how
// dimensions are bound from arguments, which checks and facts must hold, what the generated code reads (slots,
// pointers), what memory it needs, and what is launched. A recipe that passed check() can be evaluated on any arguments
// without reading outside itself.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/expression.h"
#include "tilewright/tilewright.h"

namespace tilewright::runtime {

enum class Access : uint8_t { In, Out, InOut };

/// What one tensor argument must satisfy for this class; a broken fact is `wrong_class`, so that a caller with another
/// plan can take that one.
struct Facts {
  bool unit_inner_stride = true;  ///< the last axis has stride 1 (ignored at extent 1)
  uint32_t alignment = 1;         ///< bytes, of the address; a power of two
  uint32_t pitch_alignment = 1;   ///< bytes, of every stride but the last (ignored at extent 1); a power of two
  int64_t max_bytes = 0;          ///< bytes from first to one past the last element stay below this; 0: no limit
  friend bool operator==(const Facts&, const Facts&) = default;
};

/// One axis of a tensor argument. It binds the slot `binds` to its extent, or, when that is negative, must equal
/// `extent`.
struct Axis {
  int32_t binds = -1;
  Expression extent;
  std::string text;  ///< as written, "K // 2", for messages
  friend bool operator==(const Axis&, const Axis&) = default;
};

struct TensorArgument {
  std::string name;
  tw_dtype dtype = TW_F32;
  Access access = Access::In;
  bool is_absent = false;  ///< an optional tensor that the code was compiled without
  std::vector<Axis> axes;  ///< at most TW_MAX_RANK
  Facts facts;
  std::vector<uint32_t> may_alias;  ///< indices of tensors it may overlap with
  friend bool operator==(const TensorArgument&, const TensorArgument&) = default;
};

struct ScalarArgument {
  std::string name;
  tw_dtype dtype = TW_F32;  ///< no e4m3, e5m2
  bool has_default = false;
  int64_t default_bits = 0;  ///< as the slot would hold it
  friend bool operator==(const ScalarArgument&, const ScalarArgument&) = default;
};

/// Where the i64 value of a slot comes from. Integers are extended to 64 bits by their sign; floats are their bit
/// pattern in the low bits, zero above.
enum class SlotKind : uint8_t {
  Dim,           ///< extent of `axis` of tensor `argument`: the axis whose `binds` is this slot
  Stride,        ///< stride of `axis` of tensor `argument`, in elements; 0 when an optional tensor is absent
  Scalar,        ///< scalar `argument`
  Present,       ///< 1 when tensor `argument` was given
  Computed,      ///< `value`, over slots with lower indices
  Misalignment,  ///< address of tensor `argument` modulo 64; 0 when it is absent
};

struct Slot {
  SlotKind kind = SlotKind::Computed;
  uint32_t argument = 0;
  uint32_t axis = 0;
  Expression value;
  std::string name;  ///< "K"; for messages
  friend bool operator==(const Slot&, const Slot&) = default;
};

/// Must be non-zero. A guard is a fact of the class (`wrong_class`); anything else is what the author wrote
/// (`where_failed`).
struct Requirement {
  Expression holds;
  bool is_guard = false;
  std::string text;  ///< as written: "K % 16 == 0"
  friend bool operator==(const Requirement&, const Requirement&) = default;
};

struct Workspace {
  std::string name;
  Expression bytes;
  Expression zeroed_bytes;  ///< the first so many bytes are zero before the first launch; not given: none
  friend bool operator==(const Workspace&, const Workspace&) = default;
};

/// A tensor map of a CUDA launch (the arguments of cuTensorMapEncodeTiled; enums as the driver numbers them).
struct TensorMap {
  uint32_t pointer = 0;  ///< index into pointers: tensors, then workspaces
  int32_t data_type = 0;
  std::vector<Expression> extents;       ///< innermost first, 1 to 5
  std::vector<Expression> stride_bytes;  ///< of the outer axes: one fewer
  std::vector<uint32_t> box;
  std::vector<uint32_t> element_strides;
  int32_t interleave = 0;
  int32_t swizzle = 0;
  int32_t l2_promotion = 0;
  int32_t oob_fill = 0;
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

enum class LaunchTarget : uint8_t { Cpu, Cuda };

struct Launch {
  std::string symbol;
  LaunchTarget target = LaunchTarget::Cpu;
  std::vector<Expression> grid;  ///< blocks per axis, 1 to 3, first varies fastest; no block when one is ≤ 0

  // CPU
  Expression scratch_bytes;    ///< per task
  Expression blocks_per_task;  ///< contiguous blocks a worker takes at a time; not given: the run time chooses
  Expression cost_ns;          ///< of the whole launch on one thread; below ~20 µs it runs on the caller

  // CUDA
  Expression threads;
  Expression shared_bytes;  ///< dynamic
  std::array<uint32_t, 3> cluster = {1, 1, 1};
  std::vector<TensorMap> tensor_maps;

  friend bool operator==(const Launch&, const Launch&) = default;
};

/// Side table of what the code can report: assertions and prints.
struct Message {
  int32_t id = 0;
  std::string text;      ///< for an assertion the condition as written; for a print the words before the values
  std::string location;  ///< "k.tile:12:5"
  friend bool operator==(const Message&, const Message&) = default;
};

struct Recipe {
  std::string kernel;                     ///< "matmul_relu"
  std::string target;                     ///< "cpu:x86-64-v3", "cuda:sm_90a"
  std::vector<std::string> cpu_features;  ///< beyond the architecture's baseline: "avx2", "fma", …
  std::string description;                ///< the shape class in words, for people
  std::vector<TensorArgument> tensors;
  std::vector<ScalarArgument> scalars;
  std::vector<Slot> slots;
  std::vector<Requirement> requirements;
  std::vector<Workspace> workspaces;
  std::vector<Launch> launches;  ///< in order; one has finished before the next starts
  std::vector<Message> messages;
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

inline constexpr size_t kMaxTensors = 64;
inline constexpr size_t kMaxScalars = 64;
inline constexpr size_t kMaxSlots = 512;
inline constexpr size_t kMaxWorkspaces = 32;
inline constexpr size_t kMaxLaunches = 64;
inline constexpr size_t kWorkspaceAlignment = 64;

/// Refuses a recipe that could not be evaluated safely, naming the part.
Status check(const Recipe& recipe);

/// Bytes of a recipe; equal recipes give equal bytes.
std::string serialise(const Recipe& recipe);

/// Reads what serialise() wrote, whatever the bytes are: refuses anything that is not exactly a recipe, and what
/// check() refuses. Memory is bounded by a multiple of the input.
Result<Recipe> parse_recipe(std::string_view bytes);

}  // namespace tilewright::runtime
