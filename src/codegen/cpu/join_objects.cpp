#include "codegen/cpu/join_objects.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace tilewright::codegen {
namespace {

constexpr uint32_t kLlvmAddressSignificance = 0x6fff4c03;

template <typename T>
T read(const std::string& bytes, uint64_t offset) {
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void align(std::string& bytes, uint64_t alignment) {
  if (alignment > 1) bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
}

/// A section of the result; its number is its place in the list plus one.
struct Section {
  std::string name;
  Elf64_Shdr header;
  std::string bytes;
  std::vector<Elf64_Rela> relocations;  ///< symbols by their place in Joiner::symbols_
};

struct Symbol {
  std::string name;
  Elf64_Sym entry;
  uint32_t number = 0;  ///< in the result
};

/// Where something of an input lies in the result.
struct Place {
  size_t index = SIZE_MAX;
  uint64_t base = 0;
};

class Joiner {
 public:
  void add(const std::string& object);
  std::string finish();

 private:
  struct Input {
    const std::string& bytes;
    std::vector<Elf64_Shdr> headers;
    std::vector<Place> sections, symbols;
    std::string string(const Elf64_Shdr& table, uint64_t offset) const {
      return bytes.c_str() + table.sh_offset + offset;
    }
  };

  static bool is_kept(const Elf64_Shdr& header);
  size_t section_like(const std::string& name, const Elf64_Shdr& header);
  void add_symbols(Input& input);
  void add_relocations(const Input& input);
  size_t section_symbol(size_t section);
  size_t add_symbol(std::string name, Elf64_Sym entry);
  void number_symbols();
  void write_relocations();
  void write_symbols();

  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::map<size_t, size_t> section_symbols_;
  std::map<std::string, size_t> undefined_;
  uint32_t first_global_ = 1;
};

bool Joiner::is_kept(const Elf64_Shdr& header) {
  return header.sh_type != SHT_NULL && header.sh_type != SHT_STRTAB && header.sh_type != SHT_SYMTAB &&
         header.sh_type != SHT_RELA && header.sh_type != kLlvmAddressSignificance;
}

void Joiner::add(const std::string& object) {
  Input input{object, {}, {}, {}};
  const auto header = read<Elf64_Ehdr>(object, 0);
  for (uint64_t i = 0; i < header.e_shnum; ++i)
    input.headers.push_back(read<Elf64_Shdr>(object, header.e_shoff + i * sizeof(Elf64_Shdr)));
  input.sections.resize(input.headers.size());
  const Elf64_Shdr& names = input.headers[header.e_shstrndx];
  for (size_t i = 0; i < input.headers.size(); ++i) {
    const Elf64_Shdr& section = input.headers[i];
    if (!is_kept(section)) continue;
    const size_t to = section_like(input.string(names, section.sh_name), section);
    align(sections_[to].bytes, section.sh_addralign);
    input.sections[i] = {to, sections_[to].bytes.size()};
    sections_[to].bytes.append(object, section.sh_offset, section.sh_size);
  }
  add_symbols(input);
  add_relocations(input);
}

size_t Joiner::section_like(const std::string& name, const Elf64_Shdr& header) {
  const auto found = std::ranges::find_if(sections_, [&](const Section& s) {
    return s.name == name && s.header.sh_type == header.sh_type && s.header.sh_flags == header.sh_flags &&
           s.header.sh_entsize == header.sh_entsize;
  });
  if (found != sections_.end()) {
    found->header.sh_addralign = std::max(found->header.sh_addralign, header.sh_addralign);
    return static_cast<size_t>(found - sections_.begin());
  }
  sections_.push_back({name, header, {}, {}});
  return sections_.size() - 1;
}

size_t Joiner::add_symbol(std::string name, Elf64_Sym entry) {
  symbols_.push_back({std::move(name), entry});
  return symbols_.size() - 1;
}

size_t Joiner::section_symbol(size_t section) {
  const auto [found, is_new] = section_symbols_.try_emplace(section, symbols_.size());
  if (is_new)
    add_symbol("", {0, ELF64_ST_INFO(STB_LOCAL, STT_SECTION), 0, static_cast<Elf64_Section>(section + 1), 0, 0});
  return found->second;
}

void Joiner::add_symbols(Input& input) {
  for (const Elf64_Shdr& table : input.headers) {
    if (table.sh_type != SHT_SYMTAB) continue;
    input.symbols.resize(table.sh_size / sizeof(Elf64_Sym));
    for (size_t i = 1; i < input.symbols.size(); ++i) {
      auto entry = read<Elf64_Sym>(input.bytes, table.sh_offset + i * sizeof(Elf64_Sym));
      std::string name = input.string(input.headers[table.sh_link], entry.st_name);
      const bool is_defined = entry.st_shndx != SHN_UNDEF && entry.st_shndx < SHN_LORESERVE;
      const Place place = is_defined ? input.sections[entry.st_shndx] : Place{};
      if (is_defined && place.index == SIZE_MAX) continue;  // of a section that is left out
      if (ELF64_ST_TYPE(entry.st_info) == STT_SECTION) {
        input.symbols[i] = {section_symbol(place.index), place.base};
        continue;
      }
      if (is_defined) entry.st_value += place.base, entry.st_shndx = static_cast<Elf64_Section>(place.index + 1);
      if (entry.st_shndx == SHN_UNDEF) {
        const auto [found, is_new] = undefined_.try_emplace(name, symbols_.size());
        if (is_new) add_symbol(name, entry);
        input.symbols[i] = {found->second, 0};
      } else {
        input.symbols[i] = {add_symbol(std::move(name), entry), 0};
      }
    }
  }
}

void Joiner::add_relocations(const Input& input) {
  for (const Elf64_Shdr& table : input.headers) {
    if (table.sh_type != SHT_RELA) continue;
    const Place target = input.sections[table.sh_info];
    if (target.index == SIZE_MAX) continue;
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Rela)) {
      auto entry = read<Elf64_Rela>(input.bytes, table.sh_offset + at);
      const Place symbol = input.symbols[ELF64_R_SYM(entry.r_info)];
      entry.r_offset += target.base;
      entry.r_addend += static_cast<int64_t>(symbol.base);
      entry.r_info = ELF64_R_INFO(symbol.index, ELF64_R_TYPE(entry.r_info));
      sections_[target.index].relocations.push_back(entry);
    }
  }
}

/// Local symbols come first.
void Joiner::number_symbols() {
  uint32_t next = 1;
  for (const bool wants_local : {true, false}) {
    if (!wants_local) first_global_ = next;
    for (Symbol& symbol : symbols_) {
      if ((ELF64_ST_BIND(symbol.entry.st_info) == STB_LOCAL) == wants_local) symbol.number = next++;
    }
  }
}

void Joiner::write_relocations() {
  const auto symbol_table = static_cast<Elf64_Word>(
      sections_.size() + 1 +
      static_cast<size_t>(std::ranges::count_if(sections_, [](const Section& s) { return !s.relocations.empty(); })));
  const size_t count = sections_.size();
  for (size_t i = 0; i < count; ++i) {
    if (sections_[i].relocations.empty()) continue;
    Section out{".rela" + sections_[i].name, {}, {}, {}};
    out.header = {.sh_type = SHT_RELA,
                  .sh_flags = SHF_INFO_LINK,
                  .sh_link = symbol_table,
                  .sh_info = static_cast<Elf64_Word>(i + 1),
                  .sh_addralign = 8,
                  .sh_entsize = sizeof(Elf64_Rela)};
    for (Elf64_Rela entry : sections_[i].relocations) {
      entry.r_info = ELF64_R_INFO(symbols_[ELF64_R_SYM(entry.r_info)].number, ELF64_R_TYPE(entry.r_info));
      append(out.bytes, entry);
    }
    sections_.push_back(std::move(out));
  }
}

void Joiner::write_symbols() {
  std::vector<const Symbol*> ordered(symbols_.size());
  for (const Symbol& symbol : symbols_) ordered[symbol.number - 1] = &symbol;
  Section table{".symtab", {}, {}, {}}, strings{".strtab", {}, std::string(1, '\0'), {}};
  table.header = {.sh_type = SHT_SYMTAB,
                  .sh_link = static_cast<Elf64_Word>(sections_.size() + 2),
                  .sh_info = first_global_,
                  .sh_addralign = 8,
                  .sh_entsize = sizeof(Elf64_Sym)};
  strings.header = {.sh_type = SHT_STRTAB, .sh_addralign = 1};
  append(table.bytes, Elf64_Sym{});
  for (const Symbol* symbol : ordered) {
    Elf64_Sym entry = symbol->entry;
    entry.st_name = symbol->name.empty() ? 0 : static_cast<Elf64_Word>(strings.bytes.size());
    if (!symbol->name.empty()) strings.bytes.append(symbol->name).push_back('\0');
    append(table.bytes, entry);
  }
  sections_.push_back(std::move(table));
  for (Section& section : sections_) {
    section.header.sh_name = static_cast<Elf64_Word>(strings.bytes.size());
    strings.bytes.append(section.name).push_back('\0');
  }
  strings.header.sh_name = static_cast<Elf64_Word>(strings.bytes.size());
  strings.bytes.append(strings.name).push_back('\0');
  sections_.push_back(std::move(strings));
}

std::string Joiner::finish() {
  number_symbols();
  write_relocations();
  write_symbols();
  std::string out(sizeof(Elf64_Ehdr), '\0');
  for (Section& section : sections_) {
    align(out, section.header.sh_addralign);
    section.header.sh_offset = out.size();
    section.header.sh_size = section.bytes.size();
    out += section.bytes;
  }
  align(out, 8);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL, header.e_machine = EM_X86_64, header.e_version = EV_CURRENT;
  header.e_shoff = out.size(), header.e_ehsize = sizeof(Elf64_Ehdr), header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections_.size() + 1);
  header.e_shstrndx = static_cast<Elf64_Half>(sections_.size());
  append(out, Elf64_Shdr{});
  for (const Section& section : sections_) append(out, section.header);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

}  // namespace

std::string join_objects(std::span<const std::string> objects) {
  if (objects.size() == 1) return objects[0];
  Joiner joiner;
  for (const std::string& object : objects) joiner.add(object);
  return joiner.finish();
}

}  // namespace tilewright::codegen
