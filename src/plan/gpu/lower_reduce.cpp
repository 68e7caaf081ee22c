// Reductions: over the registers of a thread, then the lanes of a warp, then the warps of the block; or, of a tile in
// memory, one thread per result. Everything is joined in the accumulator's type, which the destination decides.
#include <algorithm>
#include <limits>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::ReduceKind;
using ir::thread::Op;
using ir::thread::ShuffleMode;

Operand Lowering::identity(ReduceKind kind, DType dtype) {
  const bool real = is_float(dtype), wide = register_type(dtype) == Scalar::F64;
  const auto number = [&](double x) { return wide ? Operand::f64(x) : Operand::f32(static_cast<float>(x)); };
  const double infinity = std::numeric_limits<double>::infinity();
  const int width = bits(dtype);
  const int64_t top = is_signed_int(dtype) ? static_cast<int64_t>(~uint64_t{0} >> (65 - width))
                                           : static_cast<int64_t>(~uint64_t{0} >> (64 - width));
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::AbsSum:
    case ReduceKind::Or:
    case ReduceKind::Xor:
    case ReduceKind::Any: return real ? number(0) : Operand(0);
    case ReduceKind::AbsMax: return real ? number(0) : Operand(0);
    case ReduceKind::Prod: return dtype == DType::Bool ? Operand(1) : real ? number(1) : Operand(1);
    case ReduceKind::Max:
      return dtype == DType::Bool   ? Operand(0)
             : real                 ? number(-infinity)
             : is_signed_int(dtype) ? Operand(-top - 1)
                                    : Operand(0);
    case ReduceKind::Min: return dtype == DType::Bool ? Operand(1) : real ? number(infinity) : Operand(top);
    case ReduceKind::And: return dtype == DType::Bool ? Operand(1) : Operand(int64_t{-1});
    case ReduceKind::All: return 1;
  }
  return 0;
}

/// What elements are joined in: the destination's compute type; any and all join predicates.
DType Lowering::accumulator_type(const ir::ReduceAttributes& a) {
  if (a.kind == ReduceKind::Any || a.kind == ReduceKind::All) return DType::Bool;
  const DType from = a.src.buffer->type.dtype, to = a.dst.buffer->type.dtype;
  return is_float(to) && from == DType::F64 ? DType::F64 : compute_type(to);
}

/// An element as the reduction joins it.
Operand Lowering::reduce_input(const ir::ReduceAttributes& a, Operand x) {
  const DType dtype = accumulator_type(a);
  x = cast(compute_type(a.src.buffer->type.dtype), dtype, x);
  const bool takes_magnitude = a.kind == ReduceKind::AbsSum || a.kind == ReduceKind::AbsMax;
  return takes_magnitude ? unary(ir::UnaryOp::Abs, dtype, dtype, x) : x;
}

/// The joined elements as the destination holds them, with what it held before.
Operand Lowering::reduce_output(const ir::ReduceAttributes& a, Operand total, Operand old) {
  const DType to = a.dst.buffer->type.dtype, dtype = accumulator_type(a);
  return cast(dtype, to, a.accumulate ? combine(a.kind, dtype, cast(compute_type(to), dtype, old), total) : total);
}

Operand Lowering::combine(ReduceKind kind, DType dtype, Operand a, Operand b) {
  using ir::BinaryOp;
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::AbsSum: return binary(BinaryOp::Add, dtype, a, b);
    case ReduceKind::Prod: return binary(BinaryOp::Mul, dtype, a, b);
    case ReduceKind::Max:
    case ReduceKind::AbsMax: return binary(BinaryOp::Max, dtype, a, b);
    case ReduceKind::Min: return binary(BinaryOp::Min, dtype, a, b);
    case ReduceKind::And: return binary(BinaryOp::And, dtype, a, b);
    case ReduceKind::Or: return binary(BinaryOp::Or, dtype, a, b);
    case ReduceKind::Xor: return binary(BinaryOp::Xor, dtype, a, b);
    case ReduceKind::Any: return b_.logical_or(a, b);
    case ReduceKind::All: return b_.logical_and(a, b);
  }
  return a;
}

/// The value of the lane whose index differs in `lane_mask`; predicates and 64-bit values travel as 32-bit words.
Operand Lowering::shuffled(Operand x, int lane_mask) {
  const auto word = [&](Operand w) {
    const Reg out = b_.reg(Width::W32);
    b_.emit(Op::Shuffle, {out}, {b_.in_register(w), lane_mask}, {static_cast<int>(ShuffleMode::Butterfly)});
    return Operand(out);
  };
  if (x.is_constant) return x;
  if (x.reg.width == Width::Pred) return b_.compare(Compare::Ne, Scalar::S32, word(b_.select(Scalar::B32, x, 1, 0)), 0);
  if (x.reg.width == Width::W64) {
    const auto [low, high] = b_.split(Scalar::B64, x);
    return b_.join(Scalar::B64, word(low), word(high));
  }
  return word(x);
}

/// What this thread's registers add up to, one total per register of the result.
std::vector<Operand> Lowering::reduce_thread(const ir::ReduceAttributes& a, const Distribution& d,
                                             const Distribution& out) {
  const DType from = a.src.buffer->type.dtype, dtype = accumulator_type(a);
  std::vector<Operand> totals(out.registers.size(), identity(a.kind, dtype));
  std::vector<bool> started(out.registers.size(), false);
  for (size_t r = 0; r < d.registers.size(); ++r) {
    std::vector<int> offsets = d.registers[r];
    offsets.erase(offsets.begin() + a.dim);
    const auto k = static_cast<size_t>(out.find(offsets));
    Operand x = element(a.src.buffer, r);
    if (from == DType::Bool) x = b_.compare(Compare::Ne, Scalar::S32, x, 0);
    x = reduce_input(a, x);
    const Operand exists = valid(d, static_cast<int>(r));
    if (!exists.is(1)) x = element_or_identity(a.kind, dtype, exists, x);
    totals[k] = started[k] ? combine(a.kind, dtype, totals[k], x) : x;
    started[k] = true;
  }
  return totals;
}

Operand Lowering::element_or_identity(ReduceKind kind, DType dtype, Operand exists, Operand x) {
  if (dtype != DType::Bool) return b_.select(register_type(dtype), exists, x, identity(kind, dtype));
  return identity(kind, dtype).is(1) ? b_.logical_or(x, b_.logical_not(exists)) : b_.logical_and(x, exists);
}

/// Joins the totals of lanes; true when other warps hold parts of the same results.
bool Lowering::reduce_lanes(const ir::ReduceAttributes& a, const Distribution& d, std::vector<Operand>& totals) {
  if (separate_sums_.contains(a.dst.buffer)) return false;
  int place = 1;
  bool crosses_warps = false;
  for (const auto& digit : d.digits) {
    for (int bit = 1; digit.dim == a.dim && bit < digit.extent; bit *= 2) {
      if (place * bit >= 32) {
        crosses_warps = true;
        continue;
      }
      if (options_.plant.is("gpu_reduce", 1) && bit == 2) continue;  // plant 1: a step between lanes is left out
      for (Operand& t : totals) t = combine(a.kind, accumulator_type(a), t, shuffled(t, place * bit));
    }
    place *= digit.extent;
  }
  return crosses_warps;
}

/// Threads that hold other parts of this thread's results in other warps: `first`, plus each of `offsets`.
Lowering::Partners Lowering::partners_of(const Distribution& d, int dim) {
  Partners out{.first = thread_, .offsets = {0}};
  int place = 1;
  Operand rest = thread_;
  for (const auto& digit : d.digits) {
    const Operand value = b_.rem(Scalar::U32, rest, digit.extent);
    rest = b_.div(Scalar::U32, rest, digit.extent);
    if (digit.dim == dim && place * digit.extent > 32) {
      const int inner = std::max(1, 32 / place);  // part of this digit that lies inside a warp
      const int first = std::max(place, 32);
      out.first = b_.sub(Scalar::U32, out.first, b_.mul(Scalar::U32, b_.div(Scalar::U32, value, inner), first));
      std::vector<int> more;
      for (int p : out.offsets)
        for (int v = 0; v < digit.extent / inner; ++v) more.push_back(p + v * first);
      out.offsets = std::move(more);
    }
    place *= digit.extent;
  }
  return out;
}

// One slot per thread and register: every warp writes its part, everyone reads all parts of its results.
void Lowering::reduce_warps(const ir::ReduceAttributes& a, const Distribution& d, std::vector<Operand>& totals,
                            const Location& location) {
  const DType dtype = accumulator_type(a);
  const bool is_bool = dtype == DType::Bool;
  const int element = is_bool ? 4 : bytes(register_type(dtype));
  const Scalar type = element == 8 ? Scalar::B64 : Scalar::B32;  // a register: narrow integers keep their sign
  const int at = reserve_shared(static_cast<int64_t>(totals.size()) * threads_ * element, 16, location);
  const auto offset_of = [&](size_t k, int thread) { return (static_cast<int>(k) * threads_ + thread) * element; };
  const Operand mine = b_.add(Scalar::U32, shared_base_, b_.mad(Scalar::U32, thread_, element, at));
  b_.emit(Op::Barrier, {}, {barrier_, threads_});
  for (size_t k = 0; k < totals.size(); ++k) {
    const Operand word = is_bool ? b_.select(Scalar::B32, totals[k], 1, 0) : totals[k];
    b_.store(type, mine, std::vector<Operand>{word}, {Space::Shared, offset_of(k, 0)});
  }
  b_.emit(Op::Barrier, {}, {barrier_, threads_});
  const Partners partners = partners_of(d, a.dim);
  const Operand base = b_.add(Scalar::U32, shared_base_, b_.mad(Scalar::U32, partners.first, element, at));
  const size_t lost = options_.plant.is("gpu_reduce", 2) ? 1 : 0;  // plant 2: the last warp's part is not read
  for (size_t k = 0; k < totals.size(); ++k) {
    Operand total = 0;
    for (size_t p = 0; p + lost < partners.offsets.size(); ++p) {
      const Reg word = b_.load(type, base, 1, {Space::Shared, offset_of(k, partners.offsets[p])})[0];
      const Operand x = is_bool ? b_.compare(Compare::Ne, Scalar::S32, word, 0) : Operand(word);
      total = p == 0 ? x : combine(a.kind, dtype, total, x);
    }
    totals[k] = total;
  }
  b_.emit(Op::Barrier, {}, {barrier_, threads_});
}

void Lowering::reduce_registers(const ir::ReduceAttributes& a, const Fragment& src, const Location& location) {
  const Distribution& d = src.distribution;
  const Distribution out = slice(d, a.dim);
  const DType dtype = accumulator_type(a);
  std::vector<Operand> totals = reduce_thread(a, d, out);
  const bool crosses_warps = reduce_lanes(a, d, totals);
  if (const auto factor = factors_.find(a.src.buffer); factor != factors_.end())
    for (Operand& t : totals) t = binary(ir::BinaryOp::Mul, dtype, t, cast(DType::F32, dtype, factor->second));
  if (cluster_ > 1)
    reduce_over_cluster(a, dtype, d, totals, location);
  else if (crosses_warps)
    reduce_warps(a, d, totals, location);
  const ir::Value* dst = a.dst.buffer;
  const auto to = fragments_.find(dst);
  if (to == fragments_.end()) return reduce_to_memory(a, out, totals);
  if (to->second.distribution == out) {
    for (size_t k = 0; k < totals.size(); ++k) {
      const Reg reg = to->second.registers[k];
      b_.assign(reg, to_register(dst, reduce_output(a, totals[k], from_register(dst, reg))));
    }
    return;
  }
  Fragment kept = to_shared(dst, location);  // a layout of its own: written in shared memory meanwhile
  barrier();
  reduce_to_memory(a, out, totals);
  barrier();
  from_shared(dst, std::move(kept));
}

/// Stores the totals that one replica of each result holds.
void Lowering::reduce_to_memory(const ir::ReduceAttributes& a, const Distribution& out,
                                const std::vector<Operand>& totals) {
  const ir::Value* dst = a.dst.buffer;
  writes(dst);
  const Operand owner = owns(out);
  for_elements({}, &out, [&](const Coordinates& at, int r, Operand guard) {
    guard = b_.logical_and(guard, owner);
    const Coordinates where = view_coordinates(a.dst, at);
    const Operand old = a.accumulate ? load(dst, where, 0, guard) : Operand(0);
    store(dst, where, reduce_output(a, totals[static_cast<size_t>(r)], old), guard);
  });
}

void Lowering::reduce(const ir::Op& o) {
  const auto& a = o.as<ir::ReduceAttributes>();
  const ir::Value* dst = a.dst.buffer;
  if (const auto f = fragments_.find(a.src.buffer); f != fragments_.end())
    return reduce_registers(a, f->second, o.location);
  accesses({a.src.buffer}, {dst});
  if (const auto to = fragments_.find(dst); to != fragments_.end()) {
    const Fragment f = to->second;
    for_elements({}, &f.distribution, [&](const Coordinates& at, int r, Operand guard) {
      const Reg reg = f.registers[static_cast<size_t>(r)];
      const Operand total = reduce_line(o, at, guard);
      b_.assign(reg, to_register(dst, reduce_output(a, total, from_register(dst, reg))));
    });
    return;
  }
  std::vector<int64_t> rest = static_extents(a.src, o.location);
  rest.erase(rest.begin() + a.dim);
  for_elements(rest, nullptr, [&](const Coordinates& at, int, Operand guard) {
    const Operand total = reduce_line(o, at, guard);
    const Coordinates where = view_coordinates(a.dst, at);
    store(dst, where, reduce_output(a, total, a.accumulate ? load(dst, where, 0, guard) : Operand(0)), guard);
  });
}

/// One result of a tile in memory: a loop along the reduced dimension.
Operand Lowering::reduce_line(const ir::Op& o, const Coordinates& at, Operand guard) {
  const auto& a = o.as<ir::ReduceAttributes>();
  const DType dtype = accumulator_type(a);
  const Reg total = b_.copy_of(identity(a.kind, dtype), register_type(dtype));
  b_.for_range(0, static_extents(a.src, o.location)[static_cast<size_t>(a.dim)], 1, [&](Reg k) {
    index_.push();
    Coordinates where = at;
    where.insert(where.begin() + a.dim, Affine{k, 0});
    const Operand x = reduce_input(a, load(a.src.buffer, view_coordinates(a.src, where), 0, guard));
    b_.assign(total, combine(a.kind, dtype, total, x));
    index_.pop();
  });
  return total;
}

}  // namespace tilewright::plan::gpu
