#include "runtime/object_loader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <tuple>
#include <utility>

#include "runtime/debug_registration.h"
#include "runtime/elf_image.h"
#include "runtime/relocation.h"

namespace tilewright::runtime {
namespace {

constexpr uint64_t kMaxMappedBytes = uint64_t{1} << 28;
constexpr uint64_t kPage = 4096;

std::unexpected<Failure> bad(std::string message) {
  return fail(FailureCode::bad_object, "object: " + std::move(message));
}

uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

void* external_symbol(std::string_view name) {
#define TW_EXTERNAL_SYMBOL(symbol) \
  if (name == #symbol) return reinterpret_cast<void*>(&::symbol);
#include "runtime/symbols.def"
#undef TW_EXTERNAL_SYMBOL
  return nullptr;
}

enum class Part : uint8_t { None, Code, Constants };

/// One load in progress: code pages (sections, then stubs), then constant pages (sections, then address slots).
class Loading {
 public:
  explicit Loading(const ElfImage& image) : image_(image), places_(image.sections().size()) {}
  ~Loading() {
    if (base_) munmap(base_, size_);
  }

  Status run() {
    if (Status status = place_sections(); !status) return status;
    if (Status status = count_detours(); !status) return status;
    if (Status status = map(); !status) return status;
    if (Status status = relocate_all(); !status) return status;
    return protect();
  }

  std::vector<LoadedObject::Symbol> defined_symbols() const;
  std::string object_with_addresses() const;
  std::pair<void*, size_t> release() { return {std::exchange(base_, nullptr), size_}; }

 private:
  struct Place {
    Part part = Part::None;
    uint64_t offset = 0;  ///< within its part
  };

  Status place_sections();
  Result<Part> part_of(size_t section) const;
  Status count_detours();
  Status map();
  Status relocate_all();
  Status relocate_section(size_t relocations);
  Result<uint64_t> reached_address(uint32_t symbol, Reach how);
  Result<uint64_t> symbol_address(uint32_t symbol) const;
  Status protect();

  uint8_t* address(const Place& place) const {
    return base_ + (place.part == Part::Code ? 0 : code_pages_) + place.offset;
  }
  bool is_outside(uint32_t symbol) const { return image_.symbols()[symbol].st_shndx == SHN_UNDEF; }
  bool relocates_loaded_section(size_t index) const {
    const Elf64_Shdr& section = image_.sections()[index];
    return section.sh_type == SHT_RELA && section.sh_info < places_.size() &&
           places_[section.sh_info].part != Part::None;
  }

  const ElfImage& image_;
  std::vector<Place> places_;
  uint64_t code_bytes_ = 0, constant_bytes_ = 0;  // sections, before stubs and slots
  std::vector<int32_t> stub_of_, slot_of_;        // per symbol, -1: none
  int32_t stubs_ = 0, slots_ = 0;
  uint64_t code_pages_ = 0;
  uint8_t* base_ = nullptr;
  size_t size_ = 0;
};

Result<Part> Loading::part_of(size_t index) const {
  const Elf64_Shdr& section = image_.sections()[index];
  const std::string_view name = image_.section_name(index);
  if (!(section.sh_flags & SHF_ALLOC) || section.sh_size == 0 || name == ".eh_frame") return Part::None;
  if (section.sh_type == SHT_NOTE) return Part::None;
  if (section.sh_type != SHT_PROGBITS)
    return bad("section " + std::string(name) + " is of a kind that kernels do not have");
  if (section.sh_flags & SHF_TLS) return bad("thread-local data in " + std::string(name));
  const bool is_writable = (section.sh_flags & SHF_WRITE) && !name.starts_with(".data.rel.ro");
  if (is_writable) return bad("writable data in " + std::string(name));
  return section.sh_flags & SHF_EXECINSTR ? Part::Code : Part::Constants;
}

Status Loading::place_sections() {
  for (size_t i = 0; i < places_.size(); ++i) {
    const Elf64_Shdr& section = image_.sections()[i];
    const Result<Part> part = part_of(i);
    if (!part) return std::unexpected(part.error());
    if (*part == Part::None) continue;
    const uint64_t alignment = section.sh_addralign == 0 ? 1 : section.sh_addralign;
    if ((alignment & (alignment - 1)) != 0 || alignment > kPage) return bad("a section has an impossible alignment");
    uint64_t& used = *part == Part::Code ? code_bytes_ : constant_bytes_;
    places_[i] = {*part, round_up(used, alignment)};
    used = places_[i].offset + section.sh_size;
    if (used > kMaxMappedBytes) return bad("too large");
  }
  return {};
}

/// Finds which symbols need a stub or an address slot.
Status Loading::count_detours() {
  stub_of_.assign(image_.symbols().size(), -1);
  slot_of_.assign(image_.symbols().size(), -1);
  for (size_t i = 0; i < places_.size(); ++i) {
    if (image_.sections()[i].sh_type == SHT_REL) return bad("relocations of unknown layout");
    if (!relocates_loaded_section(i)) continue;
    const auto relocations = image_.relocations(i);
    if (!relocations) return std::unexpected(relocations.error());
    for (const Elf64_Rela& relocation : *relocations) {
      const auto symbol = static_cast<uint32_t>(ELF64_R_SYM(relocation.r_info));
      const Reach how = reach(static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info)));
      if (how == Reach::Unsupported) {
        return bad("relocation type " + std::to_string(ELF64_R_TYPE(relocation.r_info)) + " is not supported");
      }
      if (how == Reach::Direct && is_outside(symbol) && stub_of_[symbol] < 0) stub_of_[symbol] = stubs_++;
      if (how == Reach::Indirect && slot_of_[symbol] < 0) slot_of_[symbol] = slots_++;
    }
  }
  return {};
}

Status Loading::map() {
  code_bytes_ = round_up(code_bytes_, kStubBytes);
  constant_bytes_ = round_up(constant_bytes_, 8);
  code_pages_ = round_up(code_bytes_ + static_cast<uint64_t>(stubs_) * kStubBytes, kPage);
  size_ = code_pages_ + round_up(constant_bytes_ + static_cast<uint64_t>(slots_) * 8, kPage);
  if (size_ == 0) return bad("has no code");
  void* const mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return fail(FailureCode::out_of_memory, "cannot map " + std::to_string(size_) + " bytes for code");
  base_ = static_cast<uint8_t*>(mapped);
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].part == Part::None) continue;
    const std::string_view content = image_.content(i);
    std::memcpy(address(places_[i]), content.data(), content.size());
  }
  return {};
}

Result<uint64_t> Loading::symbol_address(uint32_t index) const {
  const Elf64_Sym& symbol = image_.symbols()[index];
  if (is_outside(index)) {
    const std::string_view name = image_.symbol_name(index);
    if (void* const found = external_symbol(name)) return reinterpret_cast<uint64_t>(found);
    return bad("needs '" + std::string(name) + "', which kernels may not call");
  }
  if (symbol.st_shndx >= places_.size() || places_[symbol.st_shndx].part == Part::None) {
    return bad("symbol '" + std::string(image_.symbol_name(index)) + "' is not in a loaded section");
  }
  if (symbol.st_value > image_.sections()[symbol.st_shndx].sh_size) return bad("a symbol lies outside its section");
  return reinterpret_cast<uint64_t>(address(places_[symbol.st_shndx])) + symbol.st_value;
}

Result<uint64_t> Loading::reached_address(uint32_t symbol, Reach how) {
  const Result<uint64_t> address = symbol_address(symbol);
  if (!address) return address;
  if (how == Reach::Direct && stub_of_[symbol] >= 0) {
    uint8_t* const stub = base_ + code_bytes_ + static_cast<uint64_t>(stub_of_[symbol]) * kStubBytes;
    write_stub(stub, *address);
    return reinterpret_cast<uint64_t>(stub);
  }
  if (how == Reach::Indirect) {
    uint8_t* const slot = base_ + code_pages_ + constant_bytes_ + static_cast<uint64_t>(slot_of_[symbol]) * 8;
    std::memcpy(slot, &*address, 8);
    return reinterpret_cast<uint64_t>(slot);
  }
  return address;
}

Status Loading::relocate_section(size_t index) {
  const auto relocations = image_.relocations(index);
  if (!relocations) return std::unexpected(relocations.error());
  const size_t target = image_.sections()[index].sh_info;
  const std::span<uint8_t> bytes(address(places_[target]), image_.sections()[target].sh_size);
  for (const Elf64_Rela& relocation : *relocations) {
    const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
    const Reach how = reach(type);
    if (how == Reach::Nothing) continue;
    const Result<uint64_t> reached = reached_address(static_cast<uint32_t>(ELF64_R_SYM(relocation.r_info)), how);
    if (!reached) return std::unexpected(reached.error());
    if (Status status = relocate(type, bytes, relocation.r_offset, *reached, relocation.r_addend); !status)
      return status;
  }
  return {};
}

Status Loading::relocate_all() {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!relocates_loaded_section(i)) continue;
    if (Status status = relocate_section(i); !status) return status;
  }
  return {};
}

Status Loading::protect() {
  const bool code = code_pages_ == 0 || mprotect(base_, code_pages_, PROT_READ | PROT_EXEC) == 0;
  const bool constants = size_ == code_pages_ || mprotect(base_ + code_pages_, size_ - code_pages_, PROT_READ) == 0;
  if (!code || !constants) return fail(FailureCode::out_of_memory, "the system refuses to make code executable");
  __builtin___clear_cache(reinterpret_cast<char*>(base_), reinterpret_cast<char*>(base_ + code_pages_));
  return {};
}

std::vector<LoadedObject::Symbol> Loading::defined_symbols() const {
  std::vector<LoadedObject::Symbol> out;
  for (uint32_t i = 0; i < image_.symbols().size(); ++i) {
    const Elf64_Sym& symbol = image_.symbols()[i];
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || is_outside(i)) continue;
    const Result<uint64_t> address = symbol_address(i);
    if (!address || places_[symbol.st_shndx].part != Part::Code) continue;
    out.push_back({std::string(image_.symbol_name(i)), reinterpret_cast<void*>(*address), symbol.st_size});
  }
  return out;
}

/// The file with each loaded section's address in its header, as gdb wants it.
std::string Loading::object_with_addresses() const {
  std::string copy(image_.file());
  Elf64_Ehdr header;
  std::memcpy(&header, copy.data(), sizeof header);
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].part == Part::None) continue;
    Elf64_Shdr section = image_.sections()[i];
    section.sh_addr = reinterpret_cast<uint64_t>(address(places_[i]));
    std::memcpy(copy.data() + header.e_shoff + i * sizeof section, &section, sizeof section);
  }
  return copy;
}

}  // namespace

Result<LoadedObject> LoadedObject::load(std::string_view object, CodeVisibility visibility) {
  if (!kCanLoadObjects) return bad("this machine's relocations are not supported yet");
  const Result<ElfImage> image = ElfImage::open(object, kHostMachine);
  if (!image) return std::unexpected(image.error());
  Loading loading(*image);
  if (Status status = loading.run(); !status) return std::unexpected(status.error());
  LoadedObject loaded;
  loaded.symbols_ = loading.defined_symbols();
  if (visibility.debugger) loaded.debug_entry_ = register_object(loading.object_with_addresses());
  std::tie(loaded.base_, loaded.size_) = loading.release();
  if (visibility.perf_map) {
    std::vector<PerfSymbol> symbols;
    for (const Symbol& symbol : loaded.symbols_) symbols.push_back({symbol.address, symbol.size, symbol.name});
    append_perf_map(symbols);
  }
  return loaded;
}

LoadedObject::LoadedObject(LoadedObject&& other) noexcept { *this = std::move(other); }

LoadedObject& LoadedObject::operator=(LoadedObject&& other) noexcept {
  if (this == &other) return *this;
  release();
  base_ = std::exchange(other.base_, nullptr);
  size_ = std::exchange(other.size_, 0);
  debug_entry_ = std::exchange(other.debug_entry_, nullptr);
  symbols_ = std::move(other.symbols_);
  return *this;
}

LoadedObject::~LoadedObject() { release(); }

void LoadedObject::release() {
  unregister_object(std::exchange(debug_entry_, nullptr));
  if (base_) munmap(base_, size_);
  base_ = nullptr;
}

void* LoadedObject::find(std::string_view symbol) const {
  for (const Symbol& each : symbols_) {
    if (each.name == symbol) return each.address;
  }
  return nullptr;
}

}  // namespace tilewright::runtime
