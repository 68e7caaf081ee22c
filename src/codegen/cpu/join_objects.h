// Several relocatable ELF objects (x86-64, as LLVM writes them) as one, the way `ld -r` joins them: sections of one
// name follow each other, symbols and relocations move with them.
//
// Guarantees: the bytes depend on the inputs alone; nothing is resolved or dropped but the hints for linkers
// (.llvm_addrsig). Does not do: section groups, common symbols, archives; the code generator makes none.
#pragma once

#include <span>
#include <string>

namespace tilewright::codegen {

/// At least one object. Symbols that two objects define are the caller's mistake.
std::string join_objects(std::span<const std::string> objects);

}  // namespace tilewright::codegen
