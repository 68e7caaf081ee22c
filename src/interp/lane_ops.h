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

}  // namespace tilewright::interp
