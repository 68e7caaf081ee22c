// An artefact: the code of one kernel for one shape class, and its launch recipe. The one format of what is compiled
// just in time, kept in the cache, and built ahead of time (`.twk` files).
//
// Layout, little-endian: "TWKERNEL", u32 format version, u64 digest of all that follows, u32 code kind, text recipe
// (recipe.h), text code; a text is a u32 length and its bytes. The digest finds damage, not malice.
#pragma once

#include <string>
#include <string_view>

#include "runtime/recipe.h"

namespace tilewright::runtime {

inline constexpr uint32_t kArtefactVersion = 1;

enum class CodeKind : uint32_t {
  ElfObject,  ///< a relocatable object for the CPU
  Cubin,
  Ptx,
};

struct Artefact {
  Recipe recipe;
  CodeKind kind = CodeKind::ElfObject;
  std::string code;
};

std::string serialise(const Artefact& artefact);

/// Refuses, with the reason: other files, other versions, damage, recipes that check() refuses.
Result<Artefact> parse_artefact(std::string_view bytes);

/// 64-bit FNV-1a over 8-byte words, the tail padded with zeros and the length mixed in.
uint64_t digest64(std::string_view bytes);

}  // namespace tilewright::runtime
