#include "bench/traffic/key_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tilewright::traffic {
namespace {

constexpr const char* kHelp =
    "use exact, pad16, pad64, pad128, pow2 or buckets=FILE (one size a line, or a traffic snapshot)";

bool parse_positive(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 && value <= (int64_t{1} << 31);
}

Result<std::vector<int64_t>> sizes_of_snapshot(const nlohmann::json& snapshot, const std::string& path) {
  std::vector<int64_t> sizes;
  const auto keys = snapshot.find("keys");
  if (keys == snapshot.end() || !keys->is_array()) {
    return fail(DiagnosticCode::E1645, fmt::format("'{}' has no list \"keys\"", path), kHelp);
  }
  for (const nlohmann::json& entry : *keys) {
    if (!entry.is_object() || !entry.contains("key") || !entry["key"].is_number_integer()) {
      return fail(DiagnosticCode::E1645, fmt::format("'{}' has a key without a whole number: {}", path, entry.dump()),
                  kHelp);
    }
    sizes.push_back(entry["key"].get<int64_t>());
  }
  return sizes;
}

Result<std::vector<int64_t>> read_buckets(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code ignored;
  if (!in || std::filesystem::is_directory(path, ignored))  // a folder opens, and cannot be read
    return fail(DiagnosticCode::E1643, fmt::format("cannot read the bucket list '{}'", path), kHelp);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_object()) return sizes_of_snapshot(json, path);
  std::vector<int64_t> sizes;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    int64_t size = 0;
    if (!parse_positive(line, size)) {
      return fail_at(DiagnosticCode::E1645, {std::make_shared<const std::string>(path), number, 1, 1, nullptr},
                     fmt::format("expected a positive size, found '{}'", line.substr(0, 40)), kHelp);
    }
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

Result<KeyPolicy> KeyPolicy::from_buckets(std::vector<int64_t> sizes, std::string name) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.empty()) return fail(DiagnosticCode::E1645, fmt::format("the bucket list of '{}' is empty", name), kHelp);
  if (sizes.front() < 1) {
    return fail(DiagnosticCode::E1645, fmt::format("a bucket of '{}' is {}, below 1", name, sizes.front()), kHelp);
  }
  KeyPolicy policy;
  policy.kind_ = Kind::Buckets;
  policy.buckets_ = std::move(sizes);
  policy.name_ = std::move(name);
  return policy;
}

Result<KeyPolicy> KeyPolicy::parse(const std::string& text) {
  KeyPolicy policy;
  policy.name_ = text;
  if (text == "exact") return policy;
  if (text == "pow2") {
    policy.kind_ = Kind::Pow2;
    return policy;
  }
  constexpr std::string_view kBuckets = "buckets=";
  if (text.starts_with(kBuckets)) {
    Result<std::vector<int64_t>> sizes = read_buckets(text.substr(kBuckets.size()));
    if (!sizes) return std::unexpected(sizes.error());
    return from_buckets(std::move(*sizes), text);
  }
  if (text.starts_with("pad") && parse_positive(std::string_view(text).substr(3), policy.multiple_)) {
    policy.kind_ = Kind::Pad;
    return policy;
  }
  return fail(DiagnosticCode::E1644, fmt::format("unknown key policy '{}'", text), kHelp);
}

int64_t KeyPolicy::key(int64_t prompt) const {
  const auto round_up = [](int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; };
  switch (kind_) {
    case Kind::Exact: return prompt;
    case Kind::Pad: return round_up(prompt, multiple_);
    case Kind::Pow2: return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(prompt)));
    case Kind::Buckets: {
      const auto fit = std::lower_bound(buckets_.begin(), buckets_.end(), prompt);
      return fit != buckets_.end() ? *fit : round_up(prompt, buckets_.back());
    }
  }
  return prompt;
}

}  // namespace tilewright::traffic
