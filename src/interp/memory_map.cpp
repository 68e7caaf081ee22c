#include "interp/memory_map.h"

#include <fmt/format.h>

#include <cstring>

#include "interp/scalar.h"

namespace tilewright::interp {

int MemoryMap::add(Memory memory) {
  memories_.push_back(std::move(memory));
  return static_cast<int>(memories_.size()) - 1;
}

std::byte* MemoryMap::resolve(int64_t address, int64_t bytes, bool is_write) const {
  const int64_t number = address / kSpan - 1;
  if (number < 0 || number >= static_cast<int64_t>(memories_.size())) return nullptr;
  const Memory& memory = memories_[static_cast<size_t>(number)];
  const int64_t offset = address - MemoryMap::address(static_cast<int>(number));
  if (offset < 0 || offset > memory.size - bytes || (is_write && !memory.writable)) return nullptr;
  return memory.data + offset;
}

std::string MemoryMap::describe(int64_t address) const {
  const int64_t number = address / kSpan - 1;
  if (number < 0 || number >= static_cast<int64_t>(memories_.size())) return "nowhere";
  const Memory& memory = memories_[static_cast<size_t>(number)];
  return fmt::format("{} + {} (of {} bytes{})", memory.name, address - MemoryMap::address(static_cast<int>(number)),
                     memory.size, memory.writable ? "" : ", read-only");
}

void load_element(DType storage, const std::byte* from, Column& out, int64_t lane) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(bytes(storage)));
  const auto k = static_cast<size_t>(lane);
  double real = 0;
  int64_t integer = 0;
  value_of_bits(storage, bits, real, integer);
  if (is_float(storage) == out.is_real()) {
    (out.is_real() ? out.real[k] = real : static_cast<double>(out.integer[k] = wrap(out.dtype, integer)));
  } else {  // a conversion the planner folded into the load
    (out.is_real() ? out.real[k] = real_from(storage, integer, out.dtype)
                   : static_cast<double>(out.integer[k] = integer_from(out.dtype, real)));
  }
}

void store_element(DType storage, std::byte* to, const Column& value, int64_t lane) {
  double real = 0;
  int64_t integer = 0;
  if (value.is_real()) {
    real = value.real_at(lane);
    if (!is_float(storage)) integer = integer_from(storage, real);
  } else {
    integer = wrap(storage, value.integer_at(lane));
    if (is_float(storage)) real = real_from(value.dtype, value.integer_at(lane), storage);
  }
  const uint64_t bits = bits_of(storage, real, integer);
  std::memcpy(to, &bits, static_cast<size_t>(bytes(storage)));
}

}  // namespace tilewright::interp
