#include "base/print_text.h"

#include <fmt/format.h>

#include <bit>
#include <functional>

namespace tilewright {
namespace {

using ValueText = std::function<std::string(size_t index, char kind)>;

std::string fill(std::string_view words, size_t count, const ValueText& value) {
  std::string out;
  size_t next = 0;
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] != '{') {
      out += words[at];
      continue;
    }
    if (words.substr(at).starts_with("{{")) {
      out += words[at++];
      continue;
    }
    const size_t close = words.find('}', at);
    const bool is_place = close != std::string_view::npos && close - at <= 2 && next < count;
    if (!is_place) {
      out += words[at];
      continue;
    }
    out += value(next++, close - at == 2 ? words[at + 1] : 'i');
    at = close;
  }
  for (; next < count; ++next) out += (out.empty() ? "" : " ") + value(next, 'i');
  return out;
}

}  // namespace

std::string fill_print_text(std::string_view words, std::span<const std::string> values) {
  return fill(words, values.size(), [&](size_t i, char) { return values[i]; });
}

std::string fill_print_text(std::string_view words, std::span<const int64_t> bits) {
  return fill(words, bits.size(), [&](size_t i, char kind) -> std::string {
    switch (kind) {
      case 'f': return fmt::format("{:.6g}", std::bit_cast<double>(bits[i]));
      case 'u': return std::to_string(static_cast<uint64_t>(bits[i]));
      case 'b': return bits[i] ? "true" : "false";
      default: return std::to_string(bits[i]);
    }
  });
}

}  // namespace tilewright
