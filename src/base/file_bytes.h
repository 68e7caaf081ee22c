// Whole files as bytes: mapped for reading, published by temporary name and rename for writing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/diagnostic.h"

namespace tilewright {

struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  ///< unmaps when the last copy goes
};

/// Error E3310 with the reason of the system. A file of length 0 gives an empty span.
Result<MappedFile> map_file(const std::string& path);

/// Writes `path` by temporary file, fsync and rename: readers see the old bytes or all of the new. Error E3311.
Status publish_file(const std::string& path, std::span<const std::span<const std::byte>> pieces);

}  // namespace tilewright
