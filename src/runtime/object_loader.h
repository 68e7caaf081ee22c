// Loads one relocatable ELF object (the code of a CPU artefact) into this process, with no linker and no compiler.
//
// Guarantees: every offset, size, index and string of the input is checked before use, so a damaged or hostile file is
// refused with its reason and nothing outside the new mapping is written; no page is ever writable and executable; the
// only outside symbols are those of symbols.def. Objects with writable data, constructors or thread-local data are
// refused: generated code keeps no state. Whether the code itself is harmless is not checked (artefact.h has a digest).
//
// x86-64 today; a machine is one relocation function (relocation.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/failure.h"

namespace tilewright::runtime {

/// How loaded code shows up in tools of people.
struct CodeVisibility {
  bool debugger = false;  ///< register with gdb's JIT interface (keeps a copy of the object)
  bool perf_map = false;  ///< append the symbols to /tmp/perf-<pid>.map
};

class LoadedObject {
 public:
  static Result<LoadedObject> load(std::string_view object, CodeVisibility visibility = {});

  LoadedObject() = default;
  LoadedObject(LoadedObject&& other) noexcept;
  LoadedObject& operator=(LoadedObject&& other) noexcept;
  ~LoadedObject();

  /// The address of a defined global symbol, or null.
  void* find(std::string_view symbol) const;

  struct Symbol {
    std::string name;
    void* address;
    size_t size;
  };
  const std::vector<Symbol>& symbols() const { return symbols_; }
  size_t mapped_bytes() const { return size_; }

 private:
  void release();

  void* base_ = nullptr;
  size_t size_ = 0;
  std::vector<Symbol> symbols_;
  void* debug_entry_ = nullptr;
};

}  // namespace tilewright::runtime
