#include "runtime/formula.h"

#include <bit>

namespace tilewright::runtime {
namespace {

bool is_number(const Instruction& instruction) { return instruction.op == ExpressionOp::Const; }

/// (slot + number) // number
bool is_tile_count(const std::vector<Instruction>& code) {
  return code.size() == 5 && code[0].op == ExpressionOp::Slot && is_number(code[1]) &&
         code[2].op == ExpressionOp::Add && is_number(code[3]) && code[4].op == ExpressionOp::FloorDiv &&
         code[3].value > 0;
}

}  // namespace

Formula::Formula(Expression expression) {
  const std::vector<Instruction>& code = expression.code;
  if (code.empty()) return;
  if (code.size() == 1) {
    if (is_number(code[0])) {
      addend_ = code[0].value;
    } else {
      form_ = Form::Slot;
      slot_ = static_cast<uint32_t>(code[0].value);
    }
    return;
  }
  if (!is_tile_count(code)) {
    form_ = Form::Program;
    program_ = std::move(expression);
    return;
  }
  slot_ = static_cast<uint32_t>(code[0].value);
  addend_ = code[1].value;
  const auto divisor = static_cast<uint64_t>(code[3].value);
  form_ = std::has_single_bit(divisor) ? Form::ShiftedSum : Form::DividedSum;
  divisor_ = std::has_single_bit(divisor) ? std::countr_zero(divisor) : code[3].value;
}

}  // namespace tilewright::runtime
