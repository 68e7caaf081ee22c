// Thread-phase programs: what every thread of a CUDA block executes, as structured code over mutable virtual registers.
//
// Guarantees: control flow is structured (if, loop, break); a register has one width (pred, 16, 32, 64 bits) and any
// interpretation, chosen by the instruction; the op table is thread.def. One program is one kernel. The PTX emitter and
// the thread interpreter are the two consumers. Registers are mutable on purpose: accumulators of asynchronous matrix
// instructions are updated in place, so nothing can copy them while they are in flight; the interpreter diagnoses reads
// in flight. Does not do: SSA, optimisation beyond folding of constants in the builder (ptxas does the rest).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::ir::thread {

enum class Op : uint8_t {
#define TW_THREAD_OP(name, mnemonic, kind, sentence) name,
#include "ir/thread.def"
#undef TW_THREAD_OP
};
enum class OpClass : uint8_t { Alu, Memory, Sync, Matrix, Copy, Control };
std::string_view mnemonic(Op op);
OpClass op_class(Op op);

enum class Width : uint8_t { Pred, W16, W32, W64 };

/// How an instruction reads its registers' bits.
enum class Scalar : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  BF16,
  F32,
  F64,
  E4M3,
  E5M2,
  TF32,
  F16x2,
  BF16x2,
  E4M3x2,
  E5M2x2
};
std::string_view suffix(Scalar type);  ///< PTX spelling: "u32"
int bytes(Scalar type);                ///< 1, 2, 4 or 8; 0 for Pred
Width width(Scalar type);              ///< register class; 8-bit values live in 16-bit registers
bool is_float(Scalar type);
bool is_signed(Scalar type);

enum class Compare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
enum class Space : uint8_t {
  Global,
  Shared,
  Cluster
};  ///< Cluster: shared memory of a block of the cluster, as mapa names it
enum class CacheHint : uint8_t { None, NoAllocate, EvictFirst, EvictLast, Streaming };
enum class AtomicKind : uint8_t { Add, Min, Max, Or, And, Xor, Exchange };
enum class ShuffleMode : uint8_t { Butterfly, Index, Up, Down };
enum class SpecialRegister : uint8_t {
  ThreadX,
  BlockX,
  BlockY,
  BlockZ,
  GridX,
  GridY,
  GridZ,
  Lane,
  ClusterRank,
  BlockThreads,
  SharedBase
};

struct Reg {
  uint32_t id = 0;  ///< 0 is no register
  Width width = Width::W32;
  explicit operator bool() const { return id != 0; }
  friend bool operator==(const Reg&, const Reg&) = default;
};

/// A register or a constant (integer bits of the instruction's type).
struct Value {
  Reg reg;
  int64_t constant = 0;
  bool is_constant = true;
  Value() = default;
  Value(Reg r) : reg(r), is_constant(false) {}  // NOLINT: implicit by design, operands read naturally
  Value(int64_t c) : constant(c) {}             // NOLINT
  Value(int c) : constant(c) {}                 // NOLINT
  Value(uint32_t c) : constant(c) {}            // NOLINT
  static Value f32(float x) { return Value(static_cast<int64_t>(std::bit_cast<uint32_t>(x))); }
  static Value f64(double x) { return Value(std::bit_cast<int64_t>(x)); }
  bool is(int64_t c) const { return is_constant && constant == c; }
  friend bool operator==(const Value&, const Value&) = default;
};

struct Inst {
  Op op = Op::Mov;
  Scalar type = Scalar::B32;
  Scalar from = Scalar::B32;  ///< source type of Convert
  Compare compare = Compare::Eq;
  std::vector<Reg> out;
  std::vector<Value> in;
  Reg guard;  ///< executes only where this predicate holds; 0 = always
  bool guard_not = false;
  std::array<int32_t, 6> attr{};
  int line = 0;  ///< line of the source the instruction came from, 0 if unknown
  std::vector<Inst> body, orelse;
};

struct Param {
  enum class Kind : uint8_t { Pointer, I32, I64, F32, F64, TensorMap };
  std::string name;
  Kind kind = Kind::Pointer;
};

struct Program {
  std::string name = "kernel";
  std::vector<Param> params;
  int threads = 128;
  int min_blocks = 1;     ///< resident blocks an SM the register allocation must allow
  int max_registers = 0;  ///< per thread at entry; 0 = what `threads` and `min_blocks` allow
  int shared_bytes = 0;   ///< dynamic shared memory, starting at a multiple of 1024
  int cluster = 1;        ///< blocks per cluster along x
  bool needs_sm90a = false;
  bool whole_program = false;  ///< relies on setmaxnreg, which assemblers of relocatable code (nvJitLink) ignore: the
                               ///< driver must assemble
  std::vector<Inst> body;
  uint32_t register_count = 1;
};

/// The program as text, one instruction a line, for people and golden tests.
std::string to_text(const Program& program);

}  // namespace tilewright::ir::thread
