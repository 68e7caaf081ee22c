// The pure operations on columns: every lane at once, in either mode. Inputs may be uniform (one lane) and then stand
// for every lane of the result; a result is uniform when all inputs are. Shared by every machine: the iterations of a
// `parallel`, the lanes of a vector and the elements of a tile are all columns.
#pragma once

#include "interp/column.h"
#include "ir/attributes.h"

namespace tilewright::interp {

void unary(ir::UnaryOp op, const Column& x, DType result, Mode mode, Column& out);
void binary(ir::BinaryOp op, const Column& x, const Column& y, Mode mode, Column& out);
void compare(ir::CompareOp op, const Column& x, const Column& y, Mode mode, Column& out);
void select(const Column& condition, const Column& yes, const Column& no, Mode mode, Column& out);
void cast(const Column& x, DType to, Mode mode, Column& out);
/// a·b + c rounded once. Values mode only.
void fma(const Column& a, const Column& b, const Column& c, Column& out);
/// Integer sums: each i32 lane of `sum` gains the products of the narrower elements beside it (target/cpu_dot.h).
void dot(const Column& a, const Column& b, const Column& sum, int64_t lanes, Column& out);
/// The bits of wider integer lanes as `lanes` narrower ones, low bits first.
void split_lanes(const Column& x, DType narrow, int64_t lanes, Column& out);

}  // namespace tilewright::interp
