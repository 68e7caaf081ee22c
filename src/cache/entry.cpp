#include "cache/entry.h"

#include <cstring>

namespace tilewright::cache {
namespace {

constexpr std::string_view kMagic = "TWCACHE1";

struct Header {
  char magic[8];
  Key128 key;
  uint64_t size;
  Key128 digest;
};
static_assert(sizeof(Header) == 48);

}  // namespace

std::string pack(const Key128& key, std::string_view payload) {
  Header header = {};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.key = key;
  header.size = payload.size();
  header.digest = hash128(payload);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  return file.append(payload);
}

std::optional<std::string> unpack(const Key128& key, std::string_view file) {
  Header header;
  if (file.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  const std::string_view payload = file.substr(sizeof header);
  const bool is_whole = std::memcmp(header.magic, kMagic.data(), kMagic.size()) == 0 && header.key == key &&
                        header.size == payload.size() && header.digest == hash128(payload);
  if (!is_whole) return std::nullopt;
  return std::string(payload);
}

}  // namespace tilewright::cache
