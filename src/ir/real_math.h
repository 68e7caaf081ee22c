// The operations on one double, as the language defines them: what the interpreter computes and constants fold to.
// Does not: round to another type or bound an error (interp/bounded.h does).
#pragma once

#include "ir/ir.h"

namespace tilewright::ir {

/// f(x); `round` goes to the even neighbour; `not` and `bitcast` mean nothing on a double and give x.
double evaluate(UnaryOp op, double x);
/// x op y; `min` and `max` give NaN for a NaN; the bitwise operations mean nothing on doubles and give NaN.
double evaluate(BinaryOp op, double x, double y);
bool evaluate(CompareOp op, double x, double y);

/// Minimum and maximum of floats that propagate NaN.
inline double min_or_nan(double x, double y) { return x < y || x != x ? x : y; }
inline double max_or_nan(double x, double y) { return x > y || x != x ? x : y; }

}  // namespace tilewright::ir
