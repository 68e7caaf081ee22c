// Builds thread programs: every function appends one instruction (or folds it away) at the current place.
// Typed instructions return a fresh register; `assign` and the `..._into` forms write an existing one.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/thread_program.h"

namespace tilewright::ir::thread {

class Builder {
 public:
  explicit Builder(std::string name);
  Program finish();  ///< the builder is spent afterwards
  Program& program() { return program_; }

  Reg reg(Width width);
  Reg reg(Scalar type) { return reg(width(type)); }
  std::vector<Reg> regs(int count, Scalar type);
  /// `v` in a register: itself, or a fresh one holding the constant.
  Reg in_register(Value v, Scalar type = Scalar::B32);

  int param(std::string name, Param::Kind kind);  ///< index of a new kernel parameter
  Reg load_param(int index);
  Reg param_address(int index);
  Reg special(SpecialRegister which);

  // Arithmetic; `type` says how the bits are read. Integer constants fold.
  Value add(Scalar type, Value a, Value b);
  Value sub(Scalar type, Value a, Value b);
  Value mul(Scalar type, Value a, Value b);
  Value mad(Scalar type, Value a, Value b, Value c);  ///< a * b + c; fma on floats
  Value div(Scalar type, Value a, Value b);           ///< divisor constant power of two and unsigned: shift
  Value rem(Scalar type, Value a, Value b);
  Value min(Scalar type, Value a, Value b);
  Value max(Scalar type, Value a, Value b);
  Value bit_and(Scalar type, Value a, Value b);
  Value bit_or(Scalar type, Value a, Value b);
  Value bit_xor(Scalar type, Value a, Value b);
  Value shl(Scalar type, Value a, Value b);
  Value shr(Scalar type, Value a, Value b);
  Reg unary(Op op, Scalar type, Value a, int attr0 = 0);
  Reg binary(Op op, Scalar type, Value a, Value b);
  Reg ternary(Op op, Scalar type, Value a, Value b, Value c);
  void binary_into(Reg out, Op op, Scalar type, Value a, Value b);
  void ternary_into(Reg out, Op op, Scalar type, Value a, Value b, Value c);
  void unary_into(Reg out, Op op, Scalar type, Value a);
  Value compare(Compare how, Scalar type, Value a, Value b);  ///< predicate; 0 or 1 when folded
  Value logical_and(Value a, Value b);                        ///< of predicates or folded constants
  Value logical_or(Value a, Value b);
  Value logical_not(Value a);
  Value select(Scalar type, Value predicate, Value a, Value b);
  Value convert(Scalar to, Scalar from, Value a);
  Reg pack_pair(Scalar pair, Value low, Value high);
  std::pair<Reg, Reg> split(Scalar wide, Value a);
  Reg join(Scalar wide, Value low, Value high);
  void assign(Reg out, Value v, Scalar type = Scalar::B32);
  Reg copy_of(Value v, Scalar type = Scalar::B32);  ///< a fresh register that starts as `v`

  // Memory. Addresses: 64 bit global, 32 bit shared.
  struct Access {
    Space space = Space::Global;
    int offset = 0;
    CacheHint hint = CacheHint::None;
    Reg guard{};
  };
  std::vector<Reg> load(Scalar type, Value address, int count, Access access);
  void load_into(std::span<const Reg> out, Scalar type, Value address, Access access);
  void store(Scalar type, Value address, std::span<const Value> values, Access access);

  Inst& emit(Inst inst);
  Inst& emit(Op op, std::vector<Reg> out = {}, std::vector<Value> in = {}, std::array<int32_t, 6> attr = {});

  // Control
  void if_then(Value predicate, const std::function<void()>& then, const std::function<void()>& otherwise = nullptr);
  void loop(const std::function<void()>& body);
  void break_if(Value predicate);
  /// for (i = first; i < last; i += step), i a register of `type` (S32 or S64); the bound is read once.
  void for_range(Value first, Value last, Value step, const std::function<void(Reg)>& body, Scalar type = Scalar::S32);

  int line = 0;  ///< stamped on every instruction

 private:
  Program program_;
  std::vector<std::vector<Inst>*> place_;
};

}  // namespace tilewright::ir::thread
