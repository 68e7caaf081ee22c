#include "runtime/elf_image.h"

namespace tilewright::runtime {
namespace {

std::unexpected<Failure> bad(std::string message) {
  return fail(FailureCode::bad_object, "object: " + std::move(message));
}

}  // namespace

std::optional<std::string_view> ElfImage::range(std::string_view file, uint64_t offset, uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) return std::nullopt;
  return file.substr(offset, size);
}

std::string_view ElfImage::string_at(std::string_view table, size_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

Result<ElfImage> ElfImage::open(std::string_view file, uint16_t machine) {
  Elf64_Ehdr header;
  if (file.size() < sizeof header) return bad("too short for an ELF header");
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return bad("not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return bad("not 64-bit little-endian");
  if (header.e_type != ET_REL) return bad("not relocatable");
  if (header.e_machine != machine) {
    return bad("made for machine " + std::to_string(header.e_machine) + ", this is " + std::to_string(machine));
  }
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0) return bad("has no usable section table");
  const auto table = range(file, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  if (!table) return bad("section table lies outside the file");

  ElfImage image;
  image.file_ = file;
  image.sections_ = copy_table<Elf64_Shdr>(*table);
  for (const Elf64_Shdr& section : image.sections_) {
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    if (!range(file, section.sh_offset, section.sh_size)) return bad("a section lies outside the file");
  }
  if (header.e_shstrndx >= header.e_shnum) return bad("section names are missing");
  image.names_ = image.content(header.e_shstrndx);
  if (Status status = image.read_symbols(); !status) return std::unexpected(status.error());
  return image;
}

Status ElfImage::read_symbols() {
  for (size_t i = 0; i < sections_.size(); ++i) {
    if (sections_[i].sh_type != SHT_SYMTAB) continue;
    if (!symbols_.empty()) return bad("more than one symbol table");
    if (sections_[i].sh_entsize != sizeof(Elf64_Sym)) return bad("symbol table of unknown layout");
    if (sections_[i].sh_link >= sections_.size()) return bad("symbol names are missing");
    symbols_ = copy_table<Elf64_Sym>(content(i));
    symbol_names_ = content(sections_[i].sh_link);
  }
  return {};
}

std::string_view ElfImage::content(size_t section) const {
  const Elf64_Shdr& header = sections_[section];
  if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL) return {};
  return *range(file_, header.sh_offset, header.sh_size);
}

Result<std::vector<Elf64_Rela>> ElfImage::relocations(size_t section) const {
  if (sections_[section].sh_entsize != sizeof(Elf64_Rela)) return bad("relocations of unknown layout");
  std::vector<Elf64_Rela> out = copy_table<Elf64_Rela>(content(section));
  for (const Elf64_Rela& relocation : out) {
    if (ELF64_R_SYM(relocation.r_info) >= symbols_.size())
      return bad("a relocation names a symbol that does not exist");
  }
  return out;
}

}  // namespace tilewright::runtime
