#include "bench/text_table.h"

#include <fmt/core.h>

#include <algorithm>

namespace tilewright::bench {
namespace {

/// Characters, not bytes: µ, ± and × are two bytes wide.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string draw_table(const std::vector<TextLine>& lines, bool markdown) {
  std::vector<size_t> widths(lines.empty() ? 0 : lines.front().size(), 3);
  for (const TextLine& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string out;
  for (size_t l = 0; l < lines.size(); ++l) {
    std::string text = markdown ? "|" : "";
    for (size_t i = 0; i < lines[l].size(); ++i) {
      text += (markdown ? " "
               : i == 0 ? ""
                        : "  ") +
              lines[l][i] + std::string(widths[i] - width_of(lines[l][i]), ' ') + (markdown ? " |" : "");
    }
    while (text.ends_with(' ')) text.pop_back();
    out += text + "\n";
    if (l == 0 && markdown) {
      out += "|";
      for (size_t width : widths) out += std::string(width + 2, '-') + "|";
      out += "\n";
    }
  }
  return out;
}

std::string duration_text(double ms) {
  if (ms >= 1000) return fmt::format("{:.3g} s", ms / 1000);
  if (ms >= 1) return fmt::format("{:.4g} ms", ms);
  if (ms >= 1e-3) return fmt::format("{:.4g} µs", ms * 1e3);
  return fmt::format("{:.3g} ns", ms * 1e6);
}

}  // namespace tilewright::bench
