// What an operation reads and writes as whole regions, and the element accesses inside it. Read-only facts about tile
// IR.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace tilewright::plan::gpu {

struct Views {
  std::vector<const ir::View*> reads, writes;
};
/// Regions named by the attributes of a tile operation; element accesses have none.
Views views_of(const ir::Op& op);

/// The buffer an element operation writes, or null.
const ir::Value* stored_buffer(const ir::Op& op);

using AccessVisitor =
    std::function<void(const ir::Op& access, const ir::Value* buffer, const std::vector<ir::Index>& indices)>;
/// Every Load and Store below `region`, and every Atomic.
void for_each_access(const ir::Region& region, const AccessVisitor& visit);
/// Every buffer that a Store or Atomic below `region` writes.
void for_each_store(const ir::Region& region, const std::function<void(const ir::Value*)>& visit);

/// Positions of the parallel variables that index a fragment, when each index is one, in increasing order.
std::optional<std::vector<int>> variables_of(const ir::Op& parallel, const std::vector<ir::Index>& indices);
bool uses_any(ir::Index x, const std::vector<ir::Value*>& variables);

inline bool is_fragment(const ir::Value* v) {
  return v->type.is_buffer() && v->type.space == ir::MemorySpace::Fragment;
}
std::vector<int64_t> constant_shape(const ir::Type& type);

}  // namespace tilewright::plan::gpu
