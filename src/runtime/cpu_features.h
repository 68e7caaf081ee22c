// Whether this machine can run code that was compiled for given instruction sets.
#pragma once

#include <span>
#include <string>

#include "runtime/failure.h"

namespace tilewright::runtime {

/// Refuses with the names that are missing. A name this library does not know counts as missing.
Status check_cpu_features(std::span<const std::string> names);

}  // namespace tilewright::runtime
