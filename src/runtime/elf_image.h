// A bounds-checked view of a relocatable ELF64 little-endian file: sections, symbols, relocations. Copies headers out,
// so that the file may lie at any address.
#pragma once

#include <elf.h>

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/failure.h"

namespace tilewright::runtime {

class ElfImage {
 public:
  static Result<ElfImage> open(std::string_view file, uint16_t machine);

  std::string_view file() const { return file_; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const std::vector<Elf64_Sym>& symbols() const { return symbols_; }
  std::string_view section_name(size_t index) const { return string_at(names_, sections_[index].sh_name); }
  std::string_view symbol_name(size_t index) const { return string_at(symbol_names_, symbols_[index].st_name); }
  std::string_view content(size_t section) const;  ///< empty for NOBITS
  Result<std::vector<Elf64_Rela>> relocations(size_t section) const;

 private:
  static std::string_view string_at(std::string_view table, size_t offset);

  /// The range as bytes of the file, or nothing when any of it lies outside.
  static std::optional<std::string_view> range(std::string_view file, uint64_t offset, uint64_t size);
  template <typename T>
  static std::vector<T> copy_table(std::string_view bytes) {
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
    return out;
  }
  Status read_symbols();

  std::string_view file_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string_view names_;
  std::string_view symbol_names_;
};

}  // namespace tilewright::runtime
