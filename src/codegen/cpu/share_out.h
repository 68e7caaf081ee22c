// Which functions of a kernel are compiled together: one part, or two of about equal length that two threads take.
//
// Guarantees: depends on the kernel alone, so that its object does; each part keeps the kernel's order.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace tilewright::codegen {

using Funcs = std::vector<const ir::Op*>;

Funcs all_funcs(const ir::Kernel& kernel);

/// The longer part first. Short ones stay with the rest: a second part costs about a millisecond.
std::vector<Funcs> share_out(const ir::Kernel& kernel);

}  // namespace tilewright::codegen
