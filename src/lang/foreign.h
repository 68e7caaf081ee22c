// Spellings of TileLang, Triton and Python, and which word stands for them here (foreign.def); closest known names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace tilewright::lang {

/// "spelled here as: copy(…)" for "T.copy", "tl.load", "alloc_shared" …
std::optional<std::string> foreign_hint(std::string_view name);

/// The closest of `known` within a third of the name's length (edit distance, ties: first), or empty.
std::string closest(std::string_view name, std::span<const std::string> known);

}  // namespace tilewright::lang
