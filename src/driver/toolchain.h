// Which compiler made an artefact: what enters a cache key beside kernel and options.
//
// The identity is the linker's build id of the program (or library) that holds the planner and of the module that holds
// LLVM: a rebuilt compiler never meets the artefacts of an older one, and LLVM need not be loaded to know it. A file
// without a build id counts by size and time of change.
#pragma once

#include <string>

namespace tilewright::driver {

/// "0.1.0 3fa9… 77c2…"; worked out once per process.
const std::string& toolchain_identity();

/// The GNU build id of an ELF file as hex digits; empty when there is none or the file cannot be read.
std::string build_id(const std::string& path);

}  // namespace tilewright::driver
