// "did you mean": the known name nearest to one that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tilewright {

/// The closest of `known` within a third of the name's length (edit distance, ties: first), or empty.
std::string closest(std::string_view name, std::span<const std::string> known);

}  // namespace tilewright
