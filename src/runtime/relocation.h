// Relocations of one machine: how a symbol's address becomes bytes of an instruction.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/failure.h"

namespace tilewright::runtime {

#if defined(__x86_64__)
inline constexpr uint16_t kHostMachine = 62;  // EM_X86_64
inline constexpr bool kCanLoadObjects = true;
#elif defined(__aarch64__)
inline constexpr uint16_t kHostMachine = 183;  // EM_AARCH64
inline constexpr bool kCanLoadObjects = false;
#else
inline constexpr uint16_t kHostMachine = 0;
inline constexpr bool kCanLoadObjects = false;
#endif

/// How a relocation type reaches its symbol.
enum class Reach : uint8_t {
  Nothing,   ///< no bytes change
  Direct,    ///< the symbol itself, or a stub beside the code when it is an outside function
  Absolute,  ///< the symbol itself, wherever it is
  Indirect,  ///< a slot beside the code that holds the symbol's address
  Unsupported
};

Reach reach(uint32_t type);

/// Writes one relocation. `section` are the bytes of the section in their final place, `offset` where, `target` the
/// address that reach() asks for. Refuses an offset outside the section, and a value that does not fit.
Status relocate(uint32_t type, std::span<uint8_t> section, uint64_t offset, uint64_t target, int64_t addend);

inline constexpr size_t kStubBytes = 16;
/// Code that jumps to `target`, kStubBytes long.
void write_stub(uint8_t* place, uint64_t target);

}  // namespace tilewright::runtime
