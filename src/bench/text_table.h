// Columns that line up, for a terminal or as markdown.
#pragma once

#include <string>
#include <vector>

namespace tilewright::bench {

using TextLine = std::vector<std::string>;

/// The first line is the head; every line has as many fields. Widths count characters, not bytes.
std::string draw_table(const std::vector<TextLine>& lines, bool markdown);

/// "1.234 ms", "56.7 µs", "890 ns", "1.2 s".
std::string duration_text(double ms);

}  // namespace tilewright::bench
