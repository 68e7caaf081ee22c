// Source texts from standard input and pipes, which can be read once: kept, so that a command may load its kernel
// again.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"

namespace tilewright::lang {

/// "-" and "/dev/stdin" are called "<stdin>" in diagnostics; other paths by their own name.
std::string source_name(const std::string& path);

/// The whole text, when `path` is standard input, a pipe or a device and not a file; by its path or its source_name().
/// E1005 for more than 64 MiB, E3310 when it cannot be read.
std::optional<Result<std::string>> read_once(const std::string& path);

}  // namespace tilewright::lang
