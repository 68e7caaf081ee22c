// The bytes of one cache entry on disk: magic, key, length and XXH3-128 digest of the payload, payload.
//
// unpack() accepts exactly what pack() made for that key: a truncated, extended, renamed or altered file is damaged.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace tilewright::cache {

std::string pack(const Key128& key, std::string_view payload);
std::optional<std::string> unpack(const Key128& key, std::string_view file);

}  // namespace tilewright::cache
