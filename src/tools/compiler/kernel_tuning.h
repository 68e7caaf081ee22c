// The space of a `.tile` kernel (tools/kernel_tuning.h says what it is).
#pragma once

#include "tools/kernel_tuning.h"

namespace tilewright::tools {

/// E1801, E1803 for bad sizes and parameters; E1810 when the kernel's reference is no workload of the benchmark; E1650
/// when no parameter is left to tune.
Result<KernelTuning> tune_kernel(const KernelTuningRequest& request);

}  // namespace tilewright::tools
