// What a `.tile` kernel computes, as the benchmark's workload: read off its `reference` line and its argument types.
//
// An operator that libraries know (`matmul(A, B)`, `softmax(X)` over the kernel's own arguments and nothing else) is
// that operator, with its rivals; any other expression is the kernel's own question (bench/oracle/kernel_question.h).
// Nothing is guessed: no reference, or a kernel that cannot be asked twice (`inout`), is E1810.
#pragma once

#include <map>
#include <string>

#include "base/diagnostic.h"
#include "bench/oracle/workload.h"
#include "lang/elaborate.h"

namespace tilewright::adapters {

/// `dims` are the kernel's dimensions by name.
Result<bench::Workload> workload_of_kernel(const lang::KernelInfo& info, const std::map<std::string, int64_t>& dims);

/// The kernel's own question, whether or not a library knows its operator. Optional tensors are not passed, scalars
/// have their defaults.
Result<bench::Workload> question_of_kernel(const lang::KernelInfo& info, const std::map<std::string, int64_t>& dims);

}  // namespace tilewright::adapters
