// Reductions, running sums and the arrival counter.
#include <fmt/format.h>

#include <cmath>
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

Operand Lowering::reduce_input(ReduceKind kind, DType dtype, Operand x) {
  if (kind == ReduceKind::AbsSum || kind == ReduceKind::AbsMax) return unary(ir::UnaryOp::Abs, dtype, dtype, x);
  if (kind == ReduceKind::Any || kind == ReduceKind::All) return cast(dtype, DType::Bool, x);
  return x;
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

void Lowering::reduce_registers(const ir::ReduceAttributes& a, const Fragment& src, const Location& location) {
  const DType from = a.src.buffer->type.dtype;
  const bool is_logic = a.kind == ReduceKind::Any || a.kind == ReduceKind::All;
  const DType dtype = is_logic ? DType::Bool : compute_type(from);
  const Distribution& d = src.distribution;
  const Distribution out = slice(d, a.dim);
  std::vector<Operand> totals(out.registers.size(), identity(a.kind, dtype));
  std::vector<bool> started(out.registers.size(), false);
  for (size_t r = 0; r < d.registers.size(); ++r) {
    std::vector<int> offsets = d.registers[r];
    offsets.erase(offsets.begin() + a.dim);
    const auto k = static_cast<size_t>(out.find(offsets));
    Operand x = element(a.src.buffer, r);
    if (from == DType::Bool) x = b_.compare(Compare::Ne, Scalar::S32, x, 0);
    x = reduce_input(a.kind, from == DType::Bool ? DType::Bool : compute_type(from), x);
    const Operand exists = valid(d, static_cast<int>(r));
    if (!exists.is(1)) {
      if (dtype == DType::Bool)
        x = a.kind == ReduceKind::All || a.kind == ReduceKind::And ? b_.logical_or(x, b_.logical_not(exists))
                                                                   : b_.logical_and(x, exists);
      else
        x = b_.select(register_type(dtype), exists, x, identity(a.kind, dtype));
    }
    totals[k] = started[k] ? combine(a.kind, dtype, totals[k], x) : x;
    started[k] = true;
  }
  // Lanes, then warps.
  int place = 1;
  bool crosses_warps = false;
  for (const auto& digit : d.digits) {
    if (digit.dim == a.dim && !separate_sums_.contains(a.dst.buffer)) {
      for (int bit = 1; bit < digit.extent; bit *= 2) {
        if (place * bit >= 32) {
          crosses_warps = true;
          continue;
        }
        if (options_.plant.is("gpu_reduce", 1) && bit == 2) continue;  // plant 1: a step between lanes is left out
        for (Operand& t : totals) t = combine(a.kind, dtype, t, shuffled(t, place * bit));
      }
    }
    place *= digit.extent;
  }
  if (const auto factor = factors_.find(a.src.buffer); factor != factors_.end())
    for (Operand& t : totals) t = b_.mul(Scalar::F32, t, factor->second);
  const ir::Value* dst = a.dst.buffer;
  const auto to = fragments_.find(dst);
  const bool direct = to != fragments_.end() && to->second.distribution == out;
  if (crosses_warps) {
    // One slot per (warp, register, lane group): every warp writes its part, everyone reads all parts of its row.
    const int element = dtype == DType::Bool ? 4 : bytes(register_type(dtype));
    const auto count = static_cast<int64_t>(totals.size());
    const int at = reserve_shared(count * threads_ * element, 16, location);
    const Scalar type = element == 8 ? Scalar::B64 : Scalar::B32;  // a register: narrow integers keep their sign
    const Operand mine = b_.add(Scalar::U32, shared_base_, b_.mad(Scalar::U32, thread_, element, at));
    b_.emit(Op::Barrier, {}, {barrier_, threads_});
    for (size_t k = 0; k < totals.size(); ++k) {
      const Operand word = dtype == DType::Bool ? b_.select(Scalar::B32, totals[k], 1, 0) : totals[k];
      b_.store(type, mine, std::vector<Operand>{word}, {Space::Shared, static_cast<int>(k) * threads_ * element});
    }
    b_.emit(Op::Barrier, {}, {barrier_, threads_});
    // Warps that hold other parts of the same rows: those whose index differs only in digits of the reduced dimension.
    std::vector<int> partners = {0};
    place = 1;
    Operand rest = thread_, own = thread_;
    for (const auto& digit : d.digits) {
      const Operand value = b_.rem(Scalar::U32, rest, digit.extent);
      rest = b_.div(Scalar::U32, rest, digit.extent);
      if (digit.dim == a.dim && place * digit.extent > 32) {
        const int inner = std::max(1, 32 / place);  // part of this digit that lies inside a warp
        const int first = std::max(place, 32);
        own = b_.sub(Scalar::U32, own, b_.mul(Scalar::U32, b_.div(Scalar::U32, value, inner), first));
        std::vector<int> more;
        for (int p : partners)
          for (int v = 0; v < digit.extent / inner; ++v) more.push_back(p + v * first);
        partners = std::move(more);
      }
      place *= digit.extent;
    }
    const Operand base = b_.add(Scalar::U32, shared_base_, b_.mad(Scalar::U32, own, element, at));
    for (size_t k = 0; k < totals.size(); ++k) {
      Operand total = 0;
      const size_t lost = options_.plant.is("gpu_reduce", 2) ? 1 : 0;  // plant 2: the last warp's part is not read
      for (size_t p = 0; p + lost < partners.size(); ++p) {
        const Reg word =
            b_.load(type, base, 1, {Space::Shared, (static_cast<int>(k) * threads_ + partners[p]) * element})[0];
        const Operand x = dtype == DType::Bool ? b_.compare(Compare::Ne, Scalar::S32, word, 0) : Operand(word);
        total = p == 0 ? x : combine(a.kind, dtype, total, x);
      }
      totals[k] = total;
    }
    b_.emit(Op::Barrier, {}, {barrier_, threads_});
  }
  const auto finished = [&](Operand total, Operand old) {
    const DType to_type = dst->type.dtype;
    Operand x = a.accumulate ? combine(a.kind, dtype, old, total) : total;
    return cast(dtype, to_type, x);
  };
  if (direct) {
    for (size_t k = 0; k < totals.size(); ++k) {
      const Reg reg = to->second.registers[k];
      const bool is_bool = dst->type.dtype == DType::Bool;
      const Operand x = finished(totals[k], is_bool ? b_.compare(Compare::Ne, Scalar::S32, reg, 0) : Operand(reg));
      b_.assign(reg, is_bool ? b_.select(Scalar::B32, x, 1, 0) : x);
    }
    return;
  }
  if (to != fragments_.end()) unsupported(location, "a reduction into a fragment of another layout");
  writes(dst);
  const Operand owner = owns(out);
  for_elements({}, &out, [&](const Coordinates& at, int r, Operand guard) {
    guard = b_.logical_and(guard, owner);
    const Coordinates where = view_coordinates(a.dst, at);
    const Operand old = a.accumulate ? load(dst, where, 0, guard) : Operand(0);
    store(dst, where, finished(totals[static_cast<size_t>(r)], old), guard);
  });
}

void Lowering::reduce(const ir::Op& o) {
  const auto& a = o.as<ir::ReduceAttributes>();
  if (const auto f = fragments_.find(a.src.buffer); f != fragments_.end())
    return reduce_registers(a, f->second, o.location);
  // A tile in memory: one thread per result, a loop along the reduced dimension.
  const DType from = a.src.buffer->type.dtype;
  const bool is_logic = a.kind == ReduceKind::Any || a.kind == ReduceKind::All;
  const DType dtype = is_logic ? DType::Bool : compute_type(from);
  const ir::Value* dst = a.dst.buffer;
  const auto extents = static_extents(a.src, o.location);
  const auto to = fragments_.find(dst);
  reads(a.src.buffer);
  writes(dst);
  std::vector<int64_t> rest = extents;
  rest.erase(rest.begin() + a.dim);
  const auto one = [&](const Coordinates& at, Operand guard) {
    const Reg total = b_.copy_of(identity(a.kind, dtype), dtype == DType::Bool ? Scalar::Pred : register_type(dtype));
    b_.for_range(0, extents[static_cast<size_t>(a.dim)], 1, [&](Reg k) {
      index_.push();
      Coordinates where = at;
      where.insert(where.begin() + a.dim, Affine{k, 0});
      const Operand x =
          reduce_input(a.kind, compute_type(from), load(a.src.buffer, view_coordinates(a.src, where), 0, guard));
      b_.assign(total, combine(a.kind, dtype, total, x));
      index_.pop();
    });
    return Operand(total);
  };
  if (to != fragments_.end()) {
    const Fragment f = to->second;
    for_elements({}, &f.distribution, [&](const Coordinates& at, int r, Operand guard) {
      const Reg reg = f.registers[static_cast<size_t>(r)];
      Operand x = one(at, guard);
      if (a.accumulate)
        x = combine(a.kind, dtype,
                    dst->type.dtype == DType::Bool ? b_.compare(Compare::Ne, Scalar::S32, reg, 0) : Operand(reg), x);
      x = cast(dtype, dst->type.dtype, x);
      b_.assign(reg, dst->type.dtype == DType::Bool ? b_.select(Scalar::B32, x, 1, 0) : x);
    });
    return;
  }
  for_elements(rest, nullptr, [&](const Coordinates& at, int, Operand guard) {
    const Operand total = one(at, guard);
    const Coordinates where = view_coordinates(a.dst, at);
    const Operand x = a.accumulate ? combine(a.kind, dtype, load(dst, where, 0, guard), total) : total;
    store(dst, where, cast(dtype, dst->type.dtype, x), guard);
  });
}

void Lowering::reduce_arg(const ir::Op& o) {
  const auto& a = o.as<ir::ReduceArgAttributes>();
  const DType dtype = compute_type(a.src.buffer->type.dtype);
  const Scalar type = register_type(dtype);
  auto rest = static_extents(a.src, o.location);
  const int64_t length = rest[static_cast<size_t>(a.dim)];
  rest.erase(rest.begin() + a.dim);
  reads(a.src.buffer);
  writes(a.value.buffer);
  writes(a.index.buffer);
  for_elements(rest, nullptr, [&](const Coordinates& at, int, Operand guard) {
    const auto element = [&](Operand k) {
      Coordinates where = at;
      where.insert(where.begin() + a.dim, Affine{k, 0});
      return load(a.src.buffer, view_coordinates(a.src, where), 0, guard);
    };
    const Reg best = b_.copy_of(element(0), type), position = b_.copy_of(0);
    b_.for_range(1, length, 1, [&](Reg k) {
      index_.push();
      const Operand x = element(k);
      // Better: strictly beyond, or the first NaN.
      const bool later = options_.plant.is("gpu_reduce", 3);  // plant 3: of equal elements the last
      Operand better = b_.compare(a.is_max ? (later ? Compare::Ge : Compare::Gt) : (later ? Compare::Le : Compare::Lt),
                                  type, x, best);
      if (is_float(dtype))
        better = b_.logical_and(b_.logical_or(better, b_.compare(Compare::Ne, type, x, x)),
                                b_.compare(Compare::Eq, type, best, best));
      b_.assign(best, b_.select(type, better, x, best));
      b_.assign(position, b_.select(Scalar::S32, better, k, position));
      index_.pop();
    });
    store(a.value.buffer, view_coordinates(a.value, at), cast(dtype, a.value.buffer->type.dtype, best), guard);
    store(a.index.buffer, view_coordinates(a.index, at), cast(DType::I32, a.index.buffer->type.dtype, position), guard);
  });
}

void Lowering::scan(const ir::Op& o) {
  const auto& a = o.as<ir::ScanAttributes>();
  const DType dtype = compute_type(a.src.buffer->type.dtype);
  auto rest = static_extents(a.src, o.location);
  const int64_t length = rest[static_cast<size_t>(a.dim)];
  rest.erase(rest.begin() + a.dim);
  const ReduceKind kind = a.kind == ir::ScanKind::Sum    ? ReduceKind::Sum
                          : a.kind == ir::ScanKind::Prod ? ReduceKind::Prod
                                                         : ReduceKind::Max;
  reads(a.src.buffer);
  writes(a.dst.buffer);
  for_elements(rest, nullptr, [&](const Coordinates& at, int, Operand guard) {
    const Reg total = b_.copy_of(identity(kind, dtype), register_type(dtype));
    b_.for_range(0, length, 1, [&](Reg k) {
      index_.push();
      Coordinates where = at;
      where.insert(where.begin() + a.dim, Affine{k, 0});
      const Operand x = load(a.src.buffer, view_coordinates(a.src, where), 0, guard);
      b_.assign(total, combine(kind, dtype, total, x));
      store(a.dst.buffer, view_coordinates(a.dst, where), cast(dtype, a.dst.buffer->type.dtype, total), guard);
      index_.pop();
    });
  });
}

// Everyone's writes, then one thread counts; the last arrival sees all earlier ones.
void Lowering::arrive_last(const ir::Op& o) {
  const auto& a = o.as<ir::ArriveLastAttributes>();
  const int slot = reserve_shared(16, 16, o.location);
  const Operand address = b_.add(Scalar::U32, shared_base_, slot);
  b_.emit(Op::FenceThreads);
  barrier();
  b_.if_then(b_.compare(Compare::Eq, Scalar::U32, thread_, 0), [&] {
    int immediate = 0;
    Coordinates none(a.counter.extents().size(), Affine{0, 0});
    const Operand where =
        global_address(tile_.tensor_position(a.counter.buffer), view_coordinates(a.counter, none), immediate);
    const Reg old = b_.reg(Width::W32);
    b_.emit(Op::Atomic, {old}, {where, b_.in_register(1)}, {immediate, static_cast<int>(Space::Global), 0}).type =
        Scalar::U32;
    b_.emit(Op::FenceThreads);
    const Operand is_last = b_.compare(Compare::Eq, Scalar::S32, b_.add(Scalar::S32, old, 1), index_.low_bits(index_.value(a.n)));
    b_.store(Scalar::B32, address, std::vector<Operand>{b_.select(Scalar::B32, is_last, 1, 0)}, {Space::Shared});
  });
  barrier();
  define(o.result(), b_.compare(Compare::Ne, Scalar::S32, b_.load(Scalar::B32, address, 1, {Space::Shared})[0], 0));
  barrier();
  b_.emit(Op::FenceThreads);
}

}  // namespace tilewright::plan::gpu
