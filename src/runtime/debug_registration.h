// Makes loaded code visible to gdb (its JIT interface) and to perf (/tmp/perf-<pid>.map).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tilewright::runtime {

/// `object` is an ELF file whose section headers carry the addresses of the loaded sections. The handle goes to
/// unregister_object(). Safe from several threads.
void* register_object(std::string object);
void unregister_object(void* handle);

struct PerfSymbol {
  const void* address;
  size_t size;
  std::string name;
};

/// Appends to the map of this process; a file that cannot be written is ignored (it is an aid, not a result).
void append_perf_map(const std::vector<PerfSymbol>& symbols);

}  // namespace tilewright::runtime
