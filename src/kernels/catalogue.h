// The kernels of kernels/*.tile, built into the binary.
//
// Imports between them resolve without a disk; files are named "kernels/<name>.tile" in locations. Does not cover
// examples/, which only run from their files.
#pragma once

#include <span>
#include <string_view>

#include "base/diagnostic.h"
#include "lang/source.h"

namespace tilewright::kernels {

struct EmbeddedFile {
  std::string_view name;  ///< "matmul.tile"
  std::string_view text;
};
std::span<const EmbeddedFile> embedded_files();

/// The file called `name` ("matmul.tile", "matmul" or "kernels/matmul.tile"). E1013 lists what there is.
Result<lang::Source> load(std::string_view name);

/// The file that holds the kernel called `kernel`, parsed. E1013.
Result<lang::Source> load_kernel(std::string_view kernel);

}  // namespace tilewright::kernels
