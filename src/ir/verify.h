// The rules every kernel keeps between passes.
//
// Checks: each operation is legal in the kernel's phase and has the operands, results and regions of its row; values
// are defined before use and in scope (operands, buffers of views, symbols of index expressions); types, ranks and
// extents agree; terminators end their region. Does not check what depends on run-time values (bounds, overlap).
// An error is ours, never the user's: E9002, with the operation's text.
#pragma once

#include "base/diagnostic.h"
#include "ir/ir.h"

namespace tilewright::ir {

Status verify(const Kernel& kernel);

}  // namespace tilewright::ir
