// Byte memory of the low-level phases: every pointer is a 64-bit number that names a memory and an offset, so that
// pointers are ordinary i64 columns (they can be carried by loops and offset lane by lane) and every access is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "interp/column.h"

namespace tilewright::interp {

/// One block of bytes; not owned.
struct Memory {
  std::byte* data = nullptr;
  int64_t size = 0;
  std::string name;
  bool writable = true;
};

class MemoryMap {
 public:
  /// Returns the memory's number.
  int add(Memory memory);
  void replace(int number, Memory memory) { memories_[static_cast<size_t>(number)] = std::move(memory); }
  /// The pointer to the first byte of a memory.
  static int64_t address(int number) { return (static_cast<int64_t>(number) + 1) * kSpan + kSpan / 2; }

  /// The bytes at `address`, or null when they are not wholly inside one memory (or not writable, for a write).
  std::byte* resolve(int64_t address, int64_t bytes, bool is_write) const;
  /// "A + 4096 (of 4096 bytes)" for messages.
  std::string describe(int64_t address) const;

 private:
  static constexpr int64_t kSpan = int64_t{1} << 48;
  std::vector<Memory> memories_;
};

/// One element in memory from or to lane `lane` of a column, with the storage conversions of the language.
void load_element(DType storage, const std::byte* from, Column& out, int64_t lane);
void store_element(DType storage, std::byte* to, const Column& value, int64_t lane);

}  // namespace tilewright::interp
