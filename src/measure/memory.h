// Readers of what a process has used. Nothing here allocates much or changes what it reads, except reset_peak.
#pragma once

#include <cstdint>
#include <optional>

namespace tilewright::measure {

/// Bytes from /proc/<pid>/status; `pid` 0 is this process.
struct ProcessMemory {
  int64_t resident = 0;         ///< VmRSS
  int64_t peak_resident = 0;    ///< VmHWM: the highest VmRSS since start or reset_peak
  int64_t resident_shared = 0;  ///< RssShmem: tensors shared with a worker live here
};
std::optional<ProcessMemory> read_process_memory(int pid = 0);

/// Starts VmHWM again at the present VmRSS; false where the system forbids it.
bool reset_peak(int pid = 0);

/// Peak of the control group, all its processes and page cache included; context, never the headline.
std::optional<int64_t> read_cgroup_peak();

}  // namespace tilewright::measure
