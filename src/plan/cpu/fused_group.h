// Adjacent tile operations over one iteration space, run in one pass: elements stay in registers from one operation to
// the next, and a row is finished while it is in the first-level cache. Internal to plan/cpu.
//
//   parallel(i, j) { s[i, j] = exp(s[i, j] - m[i]) }        for i { for j by lanes {
//   parallel(i, j) { p[i, j] = s[i, j] }               =>     x = exp(s[i, j..] - m[i]);  s[i, j..] = x;  p[i, j..] = x
//   reduce_sum(s, l, dim = 1)                                 sum += x }  l[i] = reduce(sum) }
//
// A group is legal when every buffer that one member writes and another touches is touched by both at their own element
// only, and nobody but its reduction touches a reduction's result. An operation between members that shares no written
// buffer with those before it is moved in front of the group.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tilewright::plan::cpu {

/// How one operation touches one buffer.
struct Touch {
  const ir::Value* buffer = nullptr;
  bool is_write = false;
  bool is_own_element = false;  ///< at (i, …, j) of the iteration space exactly
};

struct FusedGroup {
  std::vector<ir::Index> extents;     ///< tile-level
  std::vector<const ir::Op*> before;  ///< to be lowered first
  std::vector<const ir::Op*> members;
  size_t consumed = 0;  ///< operations of the region from the first member on
};

/// The longest group that starts at `position` (fewer than two members: none).
FusedGroup find_group(const ir::Region& region, size_t position);

/// About how many instructions an element costs in a pass over `op`.
int arithmetic(const ir::Op& op);

/// Every buffer an operation touches; nothing when that is not known (loops, conditions, synchronising operations).
bool touches_of(const ir::Op& op, std::vector<Touch>& out);

}  // namespace tilewright::plan::cpu
