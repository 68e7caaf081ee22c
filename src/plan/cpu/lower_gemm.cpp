// gemm for any operands: plain loops over lanes. Register tiles are in gemm_lowering.h.
#include "plan/cpu/lowering.h"

namespace tilewright::plan::cpu {

using ir::Index;
using ir::Value;

/// Any operands: one row of C at a time, lanes along N.
void Lowering::lower_plain_gemm(const ir::GemmAttributes& a) {
  const auto c_extents = view_extents(a.c), a_extents = view_extents(a.a);
  const Index depth = a_extents[a.transpose_a ? 0 : 1];
  const DType compute = compute_type(a.c.buffer->type.dtype);
  const int lanes = lanes_for(c_extents[1], compute);
  nest(c_extents, {1, lanes}, [&](const std::vector<Index>& at) {
    const Placement& c = placement(a.c.buffer);
    Value* start =
        a.accumulate ? widen(load(c, view_at(a.c, at))) : identity(ir::ReduceKind::Sum, compute, lanes_.count);
    const ir::Op* loop = b_.for_loop(number(0), depth, number(1), {start}, [&](const std::vector<Value*>& v) {
      bounds_.declare(v[0], number(0), depth - 1);
      const Index k = vector_.indices().symbol(v[0]);
      using At = std::vector<Index>;
      Value* x =
          b_.cast(load(placement(a.a.buffer), view_at(a.a, a.transpose_a ? At{k, at[0]} : At{at[0], k})), compute);
      Value* y =
          b_.cast(load(placement(a.b.buffer), view_at(a.b, a.transpose_b ? At{at[1], k} : At{k, at[1]})), compute);
      if (is_float(compute))
        b_.yield({b_.fma(widen(x), widen(y), v[1])});
      else
        b_.yield({widen(binary(ir::BinaryOp::Add, v[1], binary(ir::BinaryOp::Mul, x, y)))});
    });
    store(c, view_at(a.c, at), loop->results[0]);
  });
}

}  // namespace tilewright::plan::cpu
