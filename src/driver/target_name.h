// What the names of targets stand for: "cpu" (this machine), "cpu:x86-64-v3", "cuda" and "cuda:0" (a device of this
// machine, which is opened to be asked), "cuda:sm_90a" (an architecture; no device needed).
#pragma once

#include <optional>
#include <string_view>

#include "base/diagnostic.h"
#include "target/cpu.h"
#include "target/gpu.h"

namespace tilewright::driver {

bool is_cuda_name(std::string_view name);

/// N of "cuda:N", 0 of "cuda"; nothing for a named architecture.
std::optional<int> device_number(std::string_view name);

/// E2502 for a name that is none.
Result<target::Cpu> cpu_named(std::string_view name);

/// E2502 for a name that is none; E3051 and the like when there is no such device.
Result<target::Gpu> gpu_named(std::string_view name);

}  // namespace tilewright::driver
