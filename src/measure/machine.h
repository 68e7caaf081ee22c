// What the machine is and what it is doing: facts for the record and for `doctor`. Read, never set.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tilewright::measure {

std::string cpu_model();           ///< "Intel(R) Xeon(R) Processor"
int usable_cpus();                 ///< this process's affinity
int64_t last_level_cache_bytes();  ///< 32 MiB when the system does not say
int64_t available_memory_bytes();
std::optional<std::string> cpu_governor();
double load_average();  ///< of the last minute
/// How long this thread, or the main thread of process `pid`, has stood ready while other work had the processors; 0
/// when the system does not say.
int64_t run_delay_ns(int pid = 0);
std::optional<double> cpu_mhz();  ///< of the first processor, now

/// "cpu:<model>:<n>c" with the characters a table forbids replaced by '-'.
std::string cpu_device_name(int threads);

/// Everything that may explain a number later: model, cores, kernel, governor, compiler, versions, virtualisation.
std::map<std::string, std::string> environment_facts();

}  // namespace tilewright::measure
