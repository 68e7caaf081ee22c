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

/// The same for the names of arguments: `clear`, `trans_B`, `axis`.
std::optional<std::string> foreign_argument_hint(std::string_view label);

/// What two symbols in a row are meant as: `**`, `&&`, `||`; empty for others.
std::string symbol_hint(std::string_view first, std::string_view second);

using tilewright::closest;

}  // namespace tilewright::lang
