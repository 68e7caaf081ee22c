#include "bench/oracle/mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/hash.h"

namespace tilewright::bench {
namespace {

std::optional<int64_t> parse_count(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// "window-128" after "window-" → 128; nothing unless the whole rest is a number.
std::optional<int64_t> count_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return parse_count(text.substr(prefix.size()));
}

}  // namespace

Result<Mask> parse_mask(std::string_view text) {
  if (text == "none") return Mask{};
  if (text == "causal-br") return Mask{MaskKind::CausalBottomRight};
  if (text == "causal-tl") return Mask{MaskKind::CausalTopLeft};
  if (const auto width = count_after(text, "window-")) return Mask{MaskKind::Window, *width};
  if (const auto length = count_after(text, "prefix-")) return Mask{MaskKind::Prefix, *length};
  constexpr std::string_view kLocal = "local-";
  if (text.starts_with(kLocal)) {
    const auto rest = text.substr(kLocal.size());
    const size_t dash = rest.find('-');
    if (dash != std::string_view::npos) {
      const auto left = parse_count(rest.substr(0, dash)), right = parse_count(rest.substr(dash + 1));
      if (left && right) return Mask{MaskKind::Local, *left, *right};
    }
  }
  return fail(DiagnosticCode::E1603, fmt::format("unknown mask '{}'", text),
              "none, causal-br, causal-tl, window-W, local-L-R or prefix-P");
}

std::string to_string(const Mask& mask) {
  switch (mask.kind) {
    case MaskKind::None: return "none";
    case MaskKind::CausalBottomRight: return "causal-br";
    case MaskKind::CausalTopLeft: return "causal-tl";
    case MaskKind::Window: return fmt::format("window-{}", mask.first);
    case MaskKind::Local: return fmt::format("local-{}-{}", mask.first, mask.second);
    case MaskKind::Prefix: return fmt::format("prefix-{}", mask.first);
  }
  return "none";
}

std::string lengths_digest(const std::vector<SequenceLengths>& lengths) {
  std::string text;
  for (const SequenceLengths& l : lengths) text += fmt::format("{},{};", l.q, l.k);
  return sha256_hex(text).substr(0, 8);
}

KeyRange visible_keys(const Mask& mask, SequenceLengths lengths, int64_t query) {
  if (query < 0 || query >= lengths.q) return {};
  const int64_t position = query + lengths.k - lengths.q;
  int64_t begin = 0, end = lengths.k;
  switch (mask.kind) {
    case MaskKind::None: break;
    case MaskKind::CausalBottomRight: end = position + 1; break;
    case MaskKind::CausalTopLeft: end = query + 1; break;
    case MaskKind::Window:
      begin = position + 1 - mask.first;
      end = position + 1;
      break;
    case MaskKind::Local:
      begin = position - mask.first;
      end = position + mask.second + 1;
      break;
    case MaskKind::Prefix: end = std::max(mask.first, position + 1); break;
  }
  begin = std::clamp<int64_t>(begin, 0, lengths.k);
  end = std::clamp<int64_t>(end, begin, lengths.k);
  return {begin, end};
}

MaskBitmap build_bitmap(const Mask& mask, int64_t batch, int64_t sq, int64_t sk,
                        const std::vector<SequenceLengths>& lengths) {
  const int64_t row_bytes = (sk + 7) / 8;
  const int64_t planes = lengths.empty() ? 1 : batch;
  MaskBitmap bitmap;
  bitmap.bytes.assign(static_cast<size_t>(planes * sq * row_bytes), '\0');
  for (int64_t b = 0; b < planes; ++b) {
    const SequenceLengths own = lengths.empty() ? SequenceLengths{sq, sk} : lengths[static_cast<size_t>(b)];
    for (int64_t i = 0; i < sq; ++i) {
      const KeyRange keys = visible_keys(mask, own, i);
      bitmap.valid_pairs += keys.end - keys.begin;
      char* row = bitmap.bytes.data() + (b * sq + i) * row_bytes;
      for (int64_t j = keys.begin; j < keys.end;) {
        if (j % 8 == 0 && j + 8 <= keys.end) {
          row[j / 8] = static_cast<char>(0xFF);
          j += 8;
        } else {
          row[j / 8] = static_cast<char>(row[j / 8] | (1 << (j % 8)));
          ++j;
        }
      }
    }
  }
  if (lengths.empty()) bitmap.valid_pairs *= batch;
  bitmap.digest = sha256_hex(bitmap.bytes);
  return bitmap;
}

}  // namespace tilewright::bench
