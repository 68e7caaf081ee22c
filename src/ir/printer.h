// IR text. One line per operation:
//
//   %7, %8 = mnemonic %1, %2 {field = value, …} : type, type (%9: i64) { … } { … }
//
// With names (for people) values read %name; without (canonical, for keys and equality) they are numbered by first
// appearance and locations and texts are left out. parse_ir (ir/parser.h) reads both.
#pragma once

#include <string>

#include "ir/ir.h"

namespace tilewright::ir {

struct PrintOptions {
  bool names = true;
};
std::string to_text(const Kernel& kernel, PrintOptions options = {});
std::string to_text(const Type& type);

}  // namespace tilewright::ir
