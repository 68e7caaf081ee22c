// Expressions back to text, for messages and records.
#pragma once

#include <functional>
#include <string>

#include "lang/ast.h"

namespace tilewright::lang {

std::string to_text(const Expr& expr);

/// Calls `visit` for every Name below `expr`, left to right.
void for_each_name(const Expr& expr, const std::function<void(const std::string&)>& visit);

}  // namespace tilewright::lang
