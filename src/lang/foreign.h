// Spellings of TileLang, Triton and Python, and which word stands for them here (foreign.def); closest known names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/closest.h"
#include "base/dtype.h"

namespace tilewright::lang {

/// "spelled here as: copy(…)" for "T.copy", "tl.load", "alloc_shared" …
std::optional<std::string> foreign_hint(std::string_view name);

using tilewright::closest;

}  // namespace tilewright::lang
