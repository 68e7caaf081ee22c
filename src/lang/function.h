// Functions of expressions (min, exp, cast …) as one table; statements that act on tiles are in
// elaborate_operation.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/attributes.h"

namespace tilewright::lang {

enum class FunctionKind : uint8_t {
  Math,  ///< one argument, `op`
  Min,
  Max,
  CeilDiv,
  Select,
  Pow,
  Cast,
  Bitcast,
  Lowest,
  Highest,
  Present,
  Load
};

struct Function {
  std::string_view name;
  FunctionKind kind;
  std::string_view signature;  ///< names of the arguments; `?` marks optional ones, `…` any number
  ir::UnaryOp op = ir::UnaryOp::Neg;
};

const Function* find_function(std::string_view name);
/// Functions and operations, for "did you mean".
std::vector<std::string> function_names();

}  // namespace tilewright::lang
