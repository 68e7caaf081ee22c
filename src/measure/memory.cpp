#include "measure/memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace tilewright::measure {
namespace {

std::string proc_path(int pid, const char* file) {
  return pid == 0 ? fmt::format("/proc/self/{}", file) : fmt::format("/proc/{}/{}", pid, file);
}

std::optional<int64_t> read_number(const std::string& path) {
  std::ifstream in(path);
  int64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

}  // namespace

std::optional<ProcessMemory> read_process_memory(int pid) {
  std::ifstream in(proc_path(pid, "status"));
  ProcessMemory out;
  bool found = false;
  std::string name;
  while (in >> name) {
    int64_t* field = name == "VmRSS:"      ? &out.resident
                     : name == "VmHWM:"    ? &out.peak_resident
                     : name == "RssShmem:" ? &out.resident_shared
                                           : nullptr;
    if (field != nullptr) {
      in >> *field;
      *field *= 1024;
      found = true;
    }
    in.ignore(4096, '\n');
  }
  if (!found) return std::nullopt;
  return out;
}

bool reset_peak(int pid) {
  const int fd = ::open(proc_path(pid, "clear_refs").c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = ::write(fd, "5", 1) == 1;
  ::close(fd);
  return done;
}

std::optional<int64_t> read_cgroup_peak() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    const std::string file = controllers.empty() ? "/sys/fs/cgroup" + path + "/memory.peak"
                             : controllers.find("memory") != std::string::npos
                                 ? "/sys/fs/cgroup/memory" + path + "/memory.max_usage_in_bytes"
                                 : "";
    if (file.empty()) continue;
    if (const auto value = read_number(file)) return value;
  }
  return std::nullopt;
}

}  // namespace tilewright::measure
