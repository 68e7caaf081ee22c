// Running sums, the position of an extreme, and the arrival counter: one thread per row.
#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

using ir::ReduceKind;
using ir::thread::Op;

void Lowering::reduce_arg(const ir::Op& o) {
  const auto& a = o.as<ir::ReduceArgAttributes>();
  const DType dtype = compute_type(a.src.buffer->type.dtype);
  const Scalar type = register_type(dtype);
  auto rest = static_extents(a.src, o.location);
  const int64_t length = rest[static_cast<size_t>(a.dim)];
  rest.erase(rest.begin() + a.dim);
  accesses({a.src.buffer}, {a.value.buffer, a.index.buffer});
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
  accesses({a.src.buffer}, {a.dst.buffer});
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
    const Operand arrived = b_.add(Scalar::S32, old, 1);
    const Operand is_last = b_.compare(Compare::Eq, Scalar::S32, arrived, index_.low_bits(index_.value(a.n)));
    b_.store(Scalar::B32, address, std::vector<Operand>{b_.select(Scalar::B32, is_last, 1, 0)}, {Space::Shared});
  });
  barrier();
  define(o.result(), b_.compare(Compare::Ne, Scalar::S32, b_.load(Scalar::B32, address, 1, {Space::Shared})[0], 0));
  barrier();
  b_.emit(Op::FenceThreads);
}

}  // namespace tilewright::plan::gpu
