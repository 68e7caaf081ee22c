// Loads, stores and atomic operations on one element.
#include <fmt/format.h>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::thread::Op;

/// Truth values are 0 or 1 in a register of 32 bits; everything else is itself.
Operand Lowering::from_register(const ir::Value* buffer, Reg reg) {
  return buffer->type.dtype == DType::Bool ? b_.compare(Compare::Ne, Scalar::S32, reg, 0) : Operand(reg);
}
Operand Lowering::to_register(const ir::Value* buffer, Operand x) {
  return buffer->type.dtype == DType::Bool ? b_.select(Scalar::B32, x, 1, 0) : x;
}

/// Position of an element of a private array among its registers.
Operand Lowering::private_position(const ir::Value* buffer, const Coordinates& at) {
  Operand flat = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    const Operand x = b_.add(Scalar::S32, index_.low_bits(at[d].base), at[d].offset);
    flat = b_.add(Scalar::S32, b_.mul(Scalar::S32, flat, *buffer->type.shape[d].constant()), x);
  }
  return flat;
}

// Registers cannot be indexed: a run-time position selects among all of them.
Operand Lowering::load_private(const ir::Value* buffer, const Coordinates& at, Operand oob) {
  const std::vector<Reg>& registers = variables_.at(buffer);
  const bool is_bool = buffer->type.dtype == DType::Bool;
  const Operand exists = inside(buffer, at), position = private_position(buffer, at);
  if (exists.is(0)) return oob;
  if (position.is_constant) {
    const Reg r = registers[static_cast<size_t>(position.constant)];
    return is_bool ? b_.compare(Compare::Ne, Scalar::S32, r, 0) : Operand(b_.copy_of(r));
  }
  const Scalar type = is_bool ? Scalar::B32 : register_type(buffer->type.dtype);
  Operand x = is_bool ? b_.select(type, oob, 1, 0) : oob;
  for (size_t i = 0; i < registers.size(); ++i) {
    const Operand here = b_.compare(Compare::Eq, Scalar::S32, position, static_cast<int64_t>(i));
    x = b_.select(type, b_.logical_and(exists, here), registers[i], x);
  }
  return is_bool ? b_.compare(Compare::Ne, Scalar::S32, x, 0) : x;
}

void Lowering::store_private(const ir::Value* buffer, const Coordinates& at, Operand x) {
  const std::vector<Reg>& registers = variables_.at(buffer);
  const DType dtype = buffer->type.dtype;
  const Operand exists = inside(buffer, at), position = private_position(buffer, at);
  if (exists.is(0)) return;
  const Scalar type = dtype == DType::Bool ? Scalar::B32 : register_type(dtype);
  const Operand kept = dtype == DType::Bool ? b_.select(type, x, 1, 0) : rounded(dtype, x);
  if (position.is_constant) return b_.assign(registers[static_cast<size_t>(position.constant)], kept);
  for (size_t i = 0; i < registers.size(); ++i) {
    const Operand here = b_.compare(Compare::Eq, Scalar::S32, position, static_cast<int64_t>(i));
    b_.assign(registers[i], b_.select(type, b_.logical_and(exists, here), kept, registers[i]));
  }
}

Operand Lowering::load(const ir::Value* buffer, const Coordinates& at, Operand oob, Operand guard) {
  const DType dtype = buffer->type.dtype;
  if (variables_.contains(buffer)) return load_private(buffer, at, oob);
  int immediate = 0;
  const Operand exists = b_.logical_and(guard, inside(buffer, at));
  const bool is_shared = shared_.contains(buffer);
  const Operand address = is_shared ? shared_address(shared_.at(buffer), buffer->type, at, immediate)
                                    : global_address(tile_.tensor_position(buffer), at, immediate);
  if (exists.is(0)) return oob;
  const Scalar type = memory_type(dtype);
  const Reg raw = b_.reg(type);
  const Reg p = exists.is_constant ? Reg{} : exists.reg;
  if (p) b_.assign(raw, 0, type);
  b_.load_into(std::vector<Reg>{raw}, type, address,
               {is_shared ? Space::Shared : Space::Global, immediate, cache_hint(), p});
  const Operand x = from_memory(dtype, raw);
  return identity_select(exists, dtype, x, oob);
}

Operand Lowering::identity_select(Operand predicate, DType dtype, Operand yes, Operand no) {
  if (predicate.is(1)) return yes;
  if (dtype == DType::Bool)
    return b_.logical_or(b_.logical_and(predicate, yes), b_.logical_and(b_.logical_not(predicate), no));
  // Zero is what an unexecuted load left in the register, except where the bits are decoded to something else.
  if (no.is(0) && predicate.is_constant == false && yes.is_constant == false) return yes;
  return b_.select(register_type(dtype), predicate, yes, no);
}

void Lowering::store(const ir::Value* buffer, const Coordinates& at, Operand x, Operand guard) {
  const DType dtype = buffer->type.dtype;
  if (variables_.contains(buffer)) return store_private(buffer, at, x);
  int immediate = 0;
  const Operand exists = b_.logical_and(guard, inside(buffer, at));
  if (exists.is(0)) return;
  const bool is_shared = shared_.contains(buffer);
  const Operand address = is_shared ? shared_address(shared_.at(buffer), buffer->type, at, immediate)
                                    : global_address(tile_.tensor_position(buffer), at, immediate);
  const Operand raw = to_memory(dtype, x);
  b_.store(
      memory_type(dtype), address, std::vector<Operand>{raw},
      {is_shared ? Space::Shared : Space::Global, immediate, cache_hint(), exists.is_constant ? Reg{} : exists.reg});
}

Operand Lowering::atomic(const ir::Value* buffer, ir::AtomicKind kind, const Coordinates& at, Operand x,
                         Operand guard) {
  using ir::thread::AtomicKind;
  const DType dtype = buffer->type.dtype;
  int immediate = 0;
  const Operand exists = b_.logical_and(guard, inside(buffer, at));
  if (exists.is(0)) return 0;
  const bool is_shared = shared_.contains(buffer);
  Operand address = is_shared ? shared_address(shared_.at(buffer), buffer->type, at, immediate)
                              : global_address(tile_.tensor_position(buffer), at, immediate);
  address = b_.add(is_shared ? Scalar::U32 : Scalar::U64, address, immediate);
  const Space space = is_shared ? Space::Shared : Space::Global;
  const bool is_word = bytes(dtype) >= 4;
  const bool direct = is_word && (kind == ir::AtomicKind::Add || !is_float(dtype));
  if (direct) {
    constexpr AtomicKind kinds[] = {AtomicKind::Add, AtomicKind::Max, AtomicKind::Min, AtomicKind::Or};
    ir::thread::Inst& inst = b_.emit(Op::Atomic, {}, {address, b_.in_register(x, memory_type(dtype))},
                                     {0, static_cast<int>(space), static_cast<int>(kinds[static_cast<int>(kind)])});
    inst.type = register_type(dtype);
    if (!exists.is_constant) inst.guard = exists.reg;
    return 0;
  }
  if (dtype != DType::F32 && dtype != DType::F64)
    unsupported({}, fmt::format("atomic_{} on {}", ir::name(kind), tilewright::name(dtype)));
  b_.if_then(exists, [&] { atomic_extreme(kind, dtype, address, x, space); });
  return 0;
}

// Order-preserving integer form of a float: non-negative floats order as signed, negative ones reversed as unsigned.
void Lowering::atomic_extreme(ir::AtomicKind kind, DType dtype, Operand address, Operand x, Space space) {
  using ir::thread::AtomicKind;
  const bool is_wide = dtype == DType::F64, is_max = kind == ir::AtomicKind::Max;
  const Scalar as_signed = is_wide ? Scalar::S64 : Scalar::S32, as_unsigned = is_wide ? Scalar::U64 : Scalar::U32;
  const auto emit = [&](AtomicKind how, Scalar type) {
    b_.emit(Op::Atomic, {}, {address, b_.in_register(x, memory_type(dtype))},
            {0, static_cast<int>(space), static_cast<int>(how)})
        .type = type;
  };
  b_.if_then(
      b_.compare(Compare::Lt, as_signed, x, 0), [&] { emit(is_max ? AtomicKind::Min : AtomicKind::Max, as_unsigned); },
      [&] { emit(is_max ? AtomicKind::Max : AtomicKind::Min, as_signed); });
}

}  // namespace tilewright::plan::gpu
