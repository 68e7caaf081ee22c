// An expression of a recipe prepared for a call that is counted in nanoseconds: what most of them are (a constant, a
// slot, a number of tiles) is worked out without a loop over instructions; anything else runs as it is.
#pragma once

#include "runtime/expression.h"

namespace tilewright::runtime {

class Formula {
 public:
  Formula() = default;  ///< 0
  /// `expression` has passed check().
  explicit Formula(Expression expression);

  bool is_constant() const { return form_ == Form::Constant; }

  /// evaluate() of the expression.
  int64_t value(std::span<const int64_t> slots) const {
    switch (form_) {
      case Form::Constant: return addend_;
      case Form::Slot: return slots[slot_];
      case Form::ShiftedSum: return sum(slots) >> divisor_;
      case Form::DividedSum: return divided(sum(slots));
      case Form::Program: break;
    }
    return evaluate_program(program_, slots);
  }

 private:
  enum class Form : uint8_t { Constant, Slot, ShiftedSum, DividedSum, Program };

  int64_t sum(std::span<const int64_t> slots) const {
    return static_cast<int64_t>(static_cast<uint64_t>(slots[slot_]) + static_cast<uint64_t>(addend_));
  }
  /// Rounded to minus infinity; the divisor is positive.
  int64_t divided(int64_t value) const { return value / divisor_ - (value % divisor_ < 0 ? 1 : 0); }

  Form form_ = Form::Constant;
  uint32_t slot_ = 0;
  int64_t addend_ = 0;   ///< or the constant
  int64_t divisor_ = 1;  ///< or how far to shift
  Expression program_;
};

}  // namespace tilewright::runtime
