// What a `.tile` kernel computes, as the benchmark's workload: read off its `reference` line and its argument types.
//
// Guarantees: nothing is guessed. A reference this table does not know, or one whose operands are not the kernel's own
// arguments in the workload's order, gives E1810 with the text of the reference.
#pragma once

#include <map>
#include <string>

#include "base/diagnostic.h"
#include "bench/oracle/workload.h"
#include "lang/elaborate.h"

namespace tilewright::adapters {

/// `dims` are the kernel's dimensions by name.
Result<bench::Workload> workload_of_kernel(const lang::KernelInfo& info, const std::map<std::string, int64_t>& dims);

/// Value of an extent as written in an argument's type ("M", "K // 2", "64"); nothing when a name is unknown or the
/// form is not a name, a number or `name // number`.
std::optional<int64_t> extent_value(const std::string& text, const std::map<std::string, int64_t>& dims);

}  // namespace tilewright::adapters
