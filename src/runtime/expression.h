// Integer expressions of a launch recipe: a postfix program over slots, evaluated without allocation.
//
// Values are i64 and wrap; division and remainder round to minus infinity and give 0 for a divisor of 0; comparisons
// and logic give 0 or 1. A program that passed check() never reads outside its slots or its stack, whatever it holds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/failure.h"

namespace tilewright::runtime {

enum class ExpressionOp : uint8_t {
#define TW_EXPRESSION_OP(name, operands) name,
#include "runtime/expression.def"
#undef TW_EXPRESSION_OP
};

struct Instruction {
  ExpressionOp op = ExpressionOp::Const;
  int64_t value = 0;  ///< Const: the value; Slot: the slot's index; else unused
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// Empty means "not given"; evaluating an empty expression gives 0.
struct Expression {
  std::vector<Instruction> code;

  bool is_given() const { return !code.empty(); }
  friend bool operator==(const Expression&, const Expression&) = default;
};

inline constexpr int kMaxExpressionDepth = 64;

Expression constant(int64_t value);
Expression slot(int64_t index);
/// `op` over already built operands: `combine(ExpressionOp::Add, {slot(0), constant(1)})`.
Expression combine(ExpressionOp op, std::initializer_list<Expression> operands);
Expression ceil_div(const Expression& value, const Expression& divisor);  ///< divisor > 0

/// Refuses what evaluate() could not run over `slot_count` slots: bad operand counts, slots, depth or opcodes.
Status check(const Expression& expression, size_t slot_count);

int64_t evaluate_program(const Expression& expression, std::span<const int64_t> slots);

/// `expression` must have passed check() for this many slots. Constants and single slots, most of them, cost no call.
inline int64_t evaluate(const Expression& expression, std::span<const int64_t> slots) {
  if (expression.code.empty()) return 0;
  if (expression.code.size() > 1) return evaluate_program(expression, slots);
  const Instruction& only = expression.code[0];
  return only.op == ExpressionOp::Slot ? slots[static_cast<size_t>(only.value)] : only.value;
}

/// Infix text with every operand named: "(s0 + 1) // 2".
std::string to_string(const Expression& expression);

/// Writes the wrapped product; false when it does not fit.
inline bool multiply_exact(int64_t a, int64_t b, int64_t& product) { return !__builtin_mul_overflow(a, b, &product); }

}  // namespace tilewright::runtime
