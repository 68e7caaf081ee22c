// A constraint of a tuning space, in the language's own spelling: "block_M * block_K * 2 <= 49152 and M % block_M ==
// 0".
//
// Integers only: + - * // % (floor), comparisons, and or not, min(a, b), max(a, b), parentheses; a name is a parameter
// or a dimension; a word in quotes compares with == and !=. Pure: text and bindings in, truth out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "tune/config.h"

namespace tilewright::tune {

struct ConstraintNode;

class Constraint {
 public:
  static Result<Constraint> parse(const std::string& text, std::string reason = {});

  /// False or refused (unknown name, division by zero, a word used as a number): a refusal says which.
  Result<bool> holds(const Config& config) const;

  const std::string& text() const { return text_; }
  const std::string& reason() const { return reason_; }  ///< why it exists; the text itself when none was given

 private:
  std::string text_, reason_;
  std::shared_ptr<const ConstraintNode> root_;
};

}  // namespace tilewright::tune
