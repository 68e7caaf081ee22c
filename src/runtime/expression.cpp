#include "runtime/expression.h"

#include <algorithm>

namespace tilewright::runtime {
namespace {

constexpr int kOperands[] = {
#define TW_EXPRESSION_OP(name, operands) operands,
#include "runtime/expression.def"
#undef TW_EXPRESSION_OP
};
constexpr size_t kOpCount = std::size(kOperands);

int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

int64_t floor_div(int64_t a, int64_t b) {
  if (b > 0 && (b & (b - 1)) == 0) return a >> __builtin_ctzll(bits(b));  // tile sizes mostly are powers of two
  if (b == 0) return 0;
  if (b == -1) return wrap(0 - bits(a));
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b > 0 && (b & (b - 1)) == 0) return a & (b - 1);
  if (b == 0 || b == -1) return 0;
  const int64_t remainder = a % b;
  return remainder != 0 && ((remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

std::string_view symbol(ExpressionOp op) {
  switch (op) {
    case ExpressionOp::Add: return "+";
    case ExpressionOp::Sub: return "-";
    case ExpressionOp::Mul: return "*";
    case ExpressionOp::FloorDiv: return "//";
    case ExpressionOp::FloorMod: return "%";
    case ExpressionOp::Min: return "min";
    case ExpressionOp::Max: return "max";
    case ExpressionOp::Select: return "select";
    case ExpressionOp::Eq: return "==";
    case ExpressionOp::Ne: return "!=";
    case ExpressionOp::Lt: return "<";
    case ExpressionOp::Le: return "<=";
    case ExpressionOp::Gt: return ">";
    case ExpressionOp::Ge: return ">=";
    case ExpressionOp::And: return "and";
    case ExpressionOp::Or: return "or";
    case ExpressionOp::Not: return "not";
    case ExpressionOp::Const:
    case ExpressionOp::Slot: break;
  }
  return "?";
}

int operand_count(ExpressionOp op) { return kOperands[static_cast<size_t>(op)]; }

}  // namespace

Expression constant(int64_t value) { return {{{ExpressionOp::Const, value}}}; }
Expression slot(int64_t index) { return {{{ExpressionOp::Slot, index}}}; }

Expression combine(ExpressionOp op, std::initializer_list<Expression> operands) {
  Expression out;
  for (const Expression& operand : operands) out.code.insert(out.code.end(), operand.code.begin(), operand.code.end());
  out.code.push_back({op, 0});
  return out;
}

Expression ceil_div(const Expression& value, const Expression& divisor) {
  const Expression last = combine(ExpressionOp::Sub, {divisor, constant(1)});
  return combine(ExpressionOp::FloorDiv, {combine(ExpressionOp::Add, {value, last}), divisor});
}

Status check(const Expression& expression, size_t slot_count) {
  int depth = 0;
  for (const Instruction& instruction : expression.code) {
    const auto op = static_cast<size_t>(instruction.op);
    if (op >= kOpCount)
      return fail(FailureCode::bad_artefact, "expression has unknown operation " + std::to_string(op));
    if (instruction.op == ExpressionOp::Slot && (instruction.value < 0 || bits(instruction.value) >= slot_count)) {
      return fail(FailureCode::bad_artefact,
                  "expression reads slot " + std::to_string(instruction.value) + " of " + std::to_string(slot_count));
    }
    if (depth < kOperands[op]) return fail(FailureCode::bad_artefact, "expression lacks an operand");
    depth += 1 - kOperands[op];
    if (depth > kMaxExpressionDepth) return fail(FailureCode::bad_artefact, "expression is nested too deeply");
  }
  if (!expression.code.empty() && depth != 1)
    return fail(FailureCode::bad_artefact, "expression leaves more than one value");
  return {};
}

int64_t evaluate_program(const Expression& expression, std::span<const int64_t> slots) {
  int64_t stack[kMaxExpressionDepth + 2];
  int64_t* top = stack;  // stack[0] is below the first value
  // *top is the latest value; its partner in a binary operation is one below
  const auto binary = [&top](int64_t value) { *--top = value; };
  for (const Instruction& instruction : expression.code) {
    switch (instruction.op) {
      case ExpressionOp::Const: *++top = instruction.value; break;
      case ExpressionOp::Slot: *++top = slots[static_cast<size_t>(instruction.value)]; break;
      case ExpressionOp::Add: binary(wrap(bits(top[-1]) + bits(top[0]))); break;
      case ExpressionOp::Sub: binary(wrap(bits(top[-1]) - bits(top[0]))); break;
      case ExpressionOp::Mul: binary(wrap(bits(top[-1]) * bits(top[0]))); break;
      case ExpressionOp::FloorDiv: binary(floor_div(top[-1], top[0])); break;
      case ExpressionOp::FloorMod: binary(floor_mod(top[-1], top[0])); break;
      case ExpressionOp::Min: binary(std::min(top[-1], top[0])); break;
      case ExpressionOp::Max: binary(std::max(top[-1], top[0])); break;
      case ExpressionOp::Eq: binary(top[-1] == top[0]); break;
      case ExpressionOp::Ne: binary(top[-1] != top[0]); break;
      case ExpressionOp::Lt: binary(top[-1] < top[0]); break;
      case ExpressionOp::Le: binary(top[-1] <= top[0]); break;
      case ExpressionOp::Gt: binary(top[-1] > top[0]); break;
      case ExpressionOp::Ge: binary(top[-1] >= top[0]); break;
      case ExpressionOp::And: binary(top[-1] != 0 && top[0] != 0); break;
      case ExpressionOp::Or: binary(top[-1] != 0 || top[0] != 0); break;
      case ExpressionOp::Not: *top = *top == 0; break;
      case ExpressionOp::Select:
        top -= 2;
        *top = *top != 0 ? top[1] : top[2];
        break;
    }
  }
  return stack[1];
}

std::string to_string(const Expression& expression) {
  std::vector<std::string> stack;
  for (const Instruction& instruction : expression.code) {
    if (instruction.op == ExpressionOp::Const) {
      stack.push_back(std::to_string(instruction.value));
      continue;
    }
    if (instruction.op == ExpressionOp::Slot) {
      stack.push_back("s" + std::to_string(instruction.value));
      continue;
    }
    const int count = operand_count(instruction.op);
    if (static_cast<int>(stack.size()) < count) return "<malformed>";
    const std::string op(symbol(instruction.op));
    std::string text;
    if (count == 2 && op != "min" && op != "max") {
      text = "(" + stack[stack.size() - 2] + " " + op + " " + stack.back() + ")";
    } else {
      text = op + "(";
      for (int i = count; i > 0; --i) text += stack[stack.size() - i] + (i > 1 ? ", " : ")");
    }
    stack.resize(stack.size() - count);
    stack.push_back(std::move(text));
  }
  return stack.size() == 1 ? stack[0] : expression.code.empty() ? "" : "<malformed>";
}

}  // namespace tilewright::runtime
