// Whole-tile operations that move data: fills, copies, atomic tiles.
#include <algorithm>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

void Lowering::fill(const ir::Op& o) {
  const auto& a = o.as<ir::FillAttributes>();
  const Operand x = operand(o.operands[0]);
  const ir::Value* buffer = a.dst.buffer;
  const auto variable = variables_.find(buffer);
  const auto fragment = fragments_.find(buffer);
  if (variable != variables_.end() || fragment != fragments_.end()) {
    const auto& registers = variable != variables_.end() ? variable->second : fragment->second.registers;
    const Operand v = to_register(buffer, rounded(buffer->type.dtype, x));
    for (Reg r : registers) b_.assign(r, v);
    return;
  }
  writes(buffer);
  for_elements(static_extents(a.dst, o.location), nullptr, [&](const Coordinates& at, int, Operand guard) {
    store(buffer, view_coordinates(a.dst, at), x, guard);
  });
}

/// An element on its way from the source to the destination: converted unless what reads or stores it rounds anyway.
Operand Lowering::copied_value(const ir::CopyAttributes& a, Operand x) {
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  const bool store_rounds =
      is_storage_float(dst->type.dtype) && register_type(src->type.dtype) == Scalar::F32 && !fragments_.contains(dst);
  return store_rounds || unrounded_.contains(dst) ? x : cast(src->type.dtype, dst->type.dtype, x);
}

/// Registers to registers of the same layout.
void Lowering::copy_registers(const ir::CopyAttributes& a, const Fragment& from, const Fragment& to) {
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  for (size_t r = 0; r < from.registers.size(); ++r) {
    const Reg reg = from.registers[r];
    const bool same = src->type.dtype == dst->type.dtype;
    b_.assign(to.registers[r], same ? Operand(reg) : to_register(dst, copied_value(a, from_register(src, reg))));
  }
}

/// Registers to registers of another layout, through shared memory.
void Lowering::copy_converting(const ir::Op& o) {
  const auto& a = o.as<ir::CopyAttributes>();
  const Fragment to = fragments_.at(a.dst.buffer);
  Fragment from = to_shared(a.src.buffer, o.location);
  barrier();
  for_elements({}, &to.distribution, [&](const Coordinates& at, int r, Operand guard) {
    const Operand x = copied_value(a, load(a.src.buffer, at, 0, guard));
    b_.assign(to.registers[static_cast<size_t>(r)], to_register(a.dst.buffer, x));
  });
  barrier();
  shared_.erase(a.src.buffer);
  fragments_[a.src.buffer] = std::move(from);
}

/// The longest vector the copy can use: between a fragment and memory, no truth values.
int Lowering::vector_length(const ir::Op& o) const {
  const auto& a = o.as<ir::CopyAttributes>();
  const auto from = fragments_.find(a.src.buffer), to = fragments_.find(a.dst.buffer);
  const auto fragment = to != fragments_.end() ? to : from;
  if (fragment == fragments_.end() || a.src.buffer->type.dtype == DType::Bool ||
      a.dst.buffer->type.dtype == DType::Bool)
    return 1;
  const int v = run_length(to != fragments_.end() ? a.src : a.dst, fragment->second.distribution);
  return o.hints.vector ? std::min(v, o.hints.vector) : v;
}

void Lowering::copy(const ir::Op& o) {
  const auto& a = o.as<ir::CopyAttributes>();
  if (runs_ahead(o)) return;
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  const auto from = fragments_.find(src), to = fragments_.find(dst);
  const bool in_registers = from != fragments_.end() && to != fragments_.end();
  if (in_registers && from->second.distribution == to->second.distribution)
    return copy_registers(a, from->second, to->second);
  const Operand oob = o.operands.empty() ? Operand(0) : operand(o.operands[0]);
  accesses({src}, {dst});
  if (in_registers) return copy_converting(o);
  const int length = vector_length(o);
  copy_cache_ = o.hints.cache;
  length == 1 ? copy_elements(o, oob) : copy_in_vectors(o, oob, length);
  copy_cache_ = ir::CacheHint::Default;
}

ir::thread::CacheHint Lowering::cache_hint() const {
  switch (copy_cache_) {
    case ir::CacheHint::Default: return ir::thread::CacheHint::None;
    case ir::CacheHint::Stream: return ir::thread::CacheHint::Streaming;
    case ir::CacheHint::Keep: return ir::thread::CacheHint::EvictLast;
  }
  return ir::thread::CacheHint::None;
}

/// In vectors where the rows of the tensor are whole vectors, which is asked at run time when it is not known.
void Lowering::copy_in_vectors(const ir::Op& o, Operand oob, int length) {
  const auto& a = o.as<ir::CopyAttributes>();
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  const bool is_load = fragments_.contains(dst);
  const ir::Value* tile = is_load ? dst : src;
  VectorCopy c{.view = is_load ? &a.src : &a.dst,
               .fragment = &fragments_.at(tile),
               .tile = tile,
               .is_load = is_load,
               .oob = oob,
               .length = length};
  packed_.erase(dst);
  const bool is_float16 = src->type.dtype == DType::BF16 || src->type.dtype == DType::F16;
  const bool has_whole_rows = c.view->buffer->type.shape.back().constant().has_value();
  c.keep_packed = is_load && is_float16 && oob.is(0) && has_whole_rows && stays_packed(o, dst);
  if (has_whole_rows) return copy_vectors(c);
  const auto scoped = [&](const std::function<void()>& body) {
    index_.push();
    body();
    index_.pop();
  };
  const Operand row = index_.low_bits(extent(c.view->buffer, static_cast<int>(c.view->slices.size()) - 1));
  b_.if_then(
      b_.compare(Compare::Eq, Scalar::U32, b_.rem(Scalar::U32, row, length), 0),
      [&] { scoped([&] { copy_vectors(c); }); }, [&] { scoped([&] { copy_elements(o, oob); }); });
}

// One element at a time.
void Lowering::copy_elements(const ir::Op& o, Operand oob) {
  const auto& a = o.as<ir::CopyAttributes>();
  const ir::Value *src = a.src.buffer, *dst = a.dst.buffer;
  if (const auto from = fragments_.find(src); from != fragments_.end()) {
    const Operand owner = owns(from->second.distribution);
    for_elements({}, &from->second.distribution, [&](const Coordinates& at, int r, Operand guard) {
      const Operand x = from_register(src, from->second.registers[static_cast<size_t>(r)]);
      store(dst, view_coordinates(a.dst, at), copied_value(a, x), b_.logical_and(guard, owner));
    });
    return;
  }
  if (const auto to = fragments_.find(dst); to != fragments_.end()) {
    for_elements({}, &to->second.distribution, [&](const Coordinates& at, int r, Operand guard) {
      const Operand x = copied_value(a, load(src, view_coordinates(a.src, at), oob, guard));
      b_.assign(to->second.registers[static_cast<size_t>(r)], to_register(dst, x));
    });
    return;
  }
  for_elements(static_extents(a.dst, o.location), nullptr, [&](const Coordinates& at, int, Operand guard) {
    const Operand x = copied_value(a, load(src, view_coordinates(a.src, at), oob, guard));
    store(dst, view_coordinates(a.dst, at), x, guard);
  });
}

void Lowering::atomic_tile(const ir::Op& o) {
  const auto& a = o.as<ir::AtomicTileAttributes>();
  const auto from = fragments_.find(a.src.buffer);
  accesses({a.src.buffer}, {a.dst.buffer});
  if (from != fragments_.end()) {
    const Operand owner = owns(from->second.distribution);
    for_elements({}, &from->second.distribution, [&](const Coordinates& at, int r, Operand guard) {
      atomic(a.dst.buffer, a.kind, view_coordinates(a.dst, at),
             cast(a.src.buffer->type.dtype, a.dst.buffer->type.dtype, from->second.registers[static_cast<size_t>(r)]),
             b_.logical_and(guard, owner));
    });
    return;
  }
  for_elements(static_extents(a.src, o.location), nullptr, [&](const Coordinates& at, int, Operand guard) {
    const Operand x = load(a.src.buffer, view_coordinates(a.src, at), 0, guard);
    atomic(a.dst.buffer, a.kind, view_coordinates(a.dst, at),
           cast(a.src.buffer->type.dtype, a.dst.buffer->type.dtype, x), guard);
  });
}

}  // namespace tilewright::plan::gpu
