#include "driver/toolchain.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/loaded_file.h"
#include "codegen/backend.h"
#include "runtime/artefact.h"

namespace tilewright::driver {
namespace {

/// The identity in one PT_NOTE segment's bytes.
std::string find_build_id(const std::string& notes) {
  size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data() + at, sizeof header);
    const size_t name = at + sizeof header;
    const size_t content = name + (size_t{header.n_namesz} + 3) / 4 * 4;
    const size_t end = content + (size_t{header.n_descsz} + 3) / 4 * 4;
    if (end > notes.size() || end <= at) return {};
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && notes.compare(name, 3, "GNU") == 0) {
      std::string hex;
      for (size_t i = 0; i < header.n_descsz; ++i)
        hex += fmt::format("{:02x}", static_cast<unsigned char>(notes[content + i]));
      return hex;
    }
    at = end;
  }
  return {};
}

std::string identity_of(const std::string& path) {
  if (std::string id = build_id(path); !id.empty()) return id;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return "none";
  return fmt::format("{}@{}", size, std::filesystem::last_write_time(path, error).time_since_epoch().count());
}

}  // namespace

std::string build_id(const std::string& path) {
  constexpr size_t kMostSegments = 64, kMostNotes = 1 << 16;
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return {};
  std::vector<Elf64_Phdr> segments(std::min<size_t>(header.e_phnum, kMostSegments));
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  if (!file.read(reinterpret_cast<char*>(segments.data()),
                 static_cast<std::streamsize>(segments.size() * sizeof(Elf64_Phdr))))
    return {};
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNotes) continue;
    std::string notes(segment.p_filesz, '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    if (!file.read(notes.data(), static_cast<std::streamsize>(notes.size()))) return {};
    if (std::string id = find_build_id(notes); !id.empty()) return id;
  }
  return {};
}

const std::string& toolchain_identity() {
  static const std::string identity = fmt::format("artefact {} program {} module {}", runtime::kArtefactVersion,
                                                  identity_of(loaded_file(reinterpret_cast<const void*>(&identity_of))),
                                                  identity_of(codegen::backend_path()));
  return identity;
}

}  // namespace tilewright::driver
