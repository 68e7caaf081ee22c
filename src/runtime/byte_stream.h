// Little-endian bytes out and in. Reading past the end sets a flag and gives zeros; callers look at it once at the end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace tilewright::runtime {

static_assert(std::endian::native == std::endian::little, "artefacts are read by copying little-endian integers");

class ByteWriter {
 public:
  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void put(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T> T get() {
    T value{};
    if (bytes_.size() < sizeof value) {
      failed_ = true;
      bytes_ = {};
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }

  std::string_view text() {
    const auto size = get<uint32_t>();
    if (size > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    const std::string_view out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }

  /// A count of things that take at least `least_bytes` each; more than the rest could hold is a failure and gives 0.
  uint32_t count(size_t least_bytes) {
    const auto value = get<uint32_t>();
    if (value > bytes_.size() / least_bytes) {
      failed_ = true;
      bytes_ = {};
      return 0;
    }
    return value;
  }

  void refuse() { failed_ = true; }
  bool failed() const { return failed_; }
  size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace tilewright::runtime
