// What `bench` asks the compiler about kernels of ours: their own workloads, and times without a check.
#pragma once

#include "tools/command.h"

namespace tilewright::tools {

/// Fills `session.kernels`.
void add_kernel_services(Session& session);

}  // namespace tilewright::tools
