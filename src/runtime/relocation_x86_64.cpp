#include <elf.h>

#include <cstring>

#include "runtime/relocation.h"

namespace tilewright::runtime {
namespace {

std::unexpected<Failure> bad(std::string message) {
  return fail(FailureCode::bad_object, "object: " + std::move(message));
}

int width(uint32_t type) { return type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4; }

}  // namespace

Reach reach(uint32_t type) {
  switch (type) {
    case R_X86_64_NONE: return Reach::Nothing;
    case R_X86_64_PC32:
    case R_X86_64_PLT32: return Reach::Direct;
    case R_X86_64_64:
    case R_X86_64_PC64:
    case R_X86_64_32:
    case R_X86_64_32S: return Reach::Absolute;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return Reach::Indirect;
    default: return Reach::Unsupported;
  }
}

Status relocate(uint32_t type, std::span<uint8_t> section, uint64_t offset, uint64_t target, int64_t addend) {
  const int bytes = width(type);
  if (offset > section.size() || section.size() - offset < static_cast<size_t>(bytes)) {
    return bad("a relocation lies outside its section");
  }
  uint8_t* const place = section.data() + offset;
  const bool is_relative = type != R_X86_64_64 && type != R_X86_64_32 && type != R_X86_64_32S;
  uint64_t value = target + static_cast<uint64_t>(addend);
  if (is_relative) value -= reinterpret_cast<uint64_t>(place);
  if (bytes == 8) {
    std::memcpy(place, &value, 8);
    return {};
  }
  const auto as_signed = static_cast<int64_t>(value);
  const bool fits = type == R_X86_64_32 ? value <= UINT32_MAX : as_signed >= INT32_MIN && as_signed <= INT32_MAX;
  if (!fits) return bad("a relocation does not reach its symbol");
  const auto low = static_cast<uint32_t>(value);
  std::memcpy(place, &low, 4);
  return {};
}

void write_stub(uint8_t* place, uint64_t target) {
  const uint8_t jump_through_next_word[] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0x0f, 0x0b};  // jmp *2(%rip); ud2
  std::memcpy(place, jump_through_next_word, 8);
  std::memcpy(place + 8, &target, 8);
}

}  // namespace tilewright::runtime
