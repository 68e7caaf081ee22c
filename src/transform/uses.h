// Which operations mention a buffer, and removal of what nothing mentions any more.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tilewright::transform {

/// Buffers an operation's attributes name, in order (with repeats).
std::vector<const ir::Value*> buffers_of(const ir::Op& op);

/// All operations that mention each buffer, in program order.
std::unordered_map<const ir::Value*, std::vector<ir::Op*>> buffer_uses(const ir::Region& region);

/// Removes pure operations without uses, and allocations nothing mentions.
bool remove_dead(ir::Kernel& kernel);

}  // namespace tilewright::transform
