// Arithmetic on compile-time values, with the language's rules (wrapping i64, floor division, NaN-propagating min/max).
#pragma once

#include <optional>

#include "ir/attributes.h"
#include "lang/ast.h"
#include "lang/operand.h"

namespace tilewright::lang {

/// Empty when the operator does not join these kinds of values.
std::optional<StaticValue> fold_static(Operator op, const StaticValue& x, const StaticValue& y);
std::optional<StaticValue> fold_min_max(bool is_max, const StaticValue& x, const StaticValue& y);
std::optional<StaticValue> fold_math(ir::UnaryOp op, const StaticValue& x);

/// The value after a cast to `dtype` (rounded, saturated or wrapped), as an integer, a number or a flag.
std::optional<StaticValue> cast_static(const StaticValue& x, DType dtype);

/// True when integer `v` is a value of integer dtype `dtype`; for u64 every bit pattern is.
bool fits(int64_t v, DType dtype);

}  // namespace tilewright::lang
