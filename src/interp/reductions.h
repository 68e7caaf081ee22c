// Reductions, running sums and matrix products on columns, in either mode. Their order is unspecified in the language:
// values mode uses one order; the bounds of bounded mode hold for every order (Σ|x| times γ_n).
#pragma once

#include "interp/column.h"
#include "ir/attributes.h"

namespace tilewright::interp {

/// A rectangular column seen as outer × extent × inner, the middle being the reduced dimension.
struct Axis {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};

/// The type in which a reduction of `from` into `to` is computed.
DType accumulator_type(ir::ReduceKind kind, DType from, DType to);

/// `joined` (may be null) is the old destination, outer × inner elements.
void reduce(ir::ReduceKind kind, const Column& x, Axis axis, const Column* joined, DType to, Mode mode, Column& out);

/// Value and lowest index of the extreme element; NaN wins.
void reduce_arg(bool is_max, const Column& x, Axis axis, Mode mode, Column& value, Column& index);

void scan(ir::ScanKind kind, const Column& x, Axis axis, DType to, Mode mode, Column& out);

struct GemmShape {
  int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
};
/// `joined` (may be null) is the old C.
void gemm(const Column& a, const Column& b, const Column* joined, const GemmShape& shape, DType to, Mode mode,
          Column& out);

}  // namespace tilewright::interp
