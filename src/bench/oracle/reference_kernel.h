// R0 and the declared-types evaluation of a kernel's own reference: its expression in float64 with a bound for every
// value, and in the declared types (kernels/reference.h computes both).
#pragma once

#include <span>

#include "bench/oracle/reference.h"

namespace tilewright::bench {

/// Two for every multiply-add of the expression's products.
double question_flops(const Workload& workload);

Expected evaluate_question(const Workload& workload, std::span<const HostTensor> inputs,
                           const ReferenceOptions& options);
std::vector<ExpectedOutput> evaluate_question_declared(const Workload& workload, std::span<const HostTensor> inputs,
                                                       const ReferenceOptions& options);

/// How the table, the records and the report call this reference.
std::string question_label(const KernelQuestion& question);

}  // namespace tilewright::bench
