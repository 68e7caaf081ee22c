// Reads the text of ir/printer.h.
//
// Guarantees: parse_ir(to_text(k)) is equal to k for every kernel whose values were created in the order of the text
// (names and extents survive; the wording of asserts and prints does not); any bytes give a kernel or a Diagnostic
// (E1101) with line and column. Does not verify: verify.h does.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "ir/ir.h"

namespace tilewright::ir {

Result<Kernel> parse_ir(std::string_view text, std::string file_name = "<ir>");

}  // namespace tilewright::ir
