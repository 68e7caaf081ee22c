// Text to syntax tree.
//
// Guarantees: any bytes give a tree or one Diagnostic with a place; never a crash, a hang or unbounded recursion
// (sources are at most kLargestSource bytes, nesting at most kDeepest). Does not resolve names or imports: elaborate.h.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "lang/ast.h"

namespace tilewright::lang {

Result<std::shared_ptr<const File>> parse_file(std::string_view text, std::string file_name);

}  // namespace tilewright::lang
