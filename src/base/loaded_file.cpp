#include "base/loaded_file.h"

#include <cstdint>
#include <cstdio>
#include <fstream>

namespace tilewright {

// dladdr gives the name the file was opened by, which may be relative to a folder that is no longer the current one.
std::string loaded_file(const void* code) {
  const auto wanted = reinterpret_cast<uintptr_t>(code);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &first, &last) != 2 || wanted < first || wanted >= last) continue;
    if (const size_t path = line.find('/'); path != std::string::npos) return line.substr(path);
  }
  return "/proc/self/exe";
}

}  // namespace tilewright
