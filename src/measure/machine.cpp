#include "measure/machine.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace tilewright::measure {
namespace {

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (std::getline(in, line)) return line;
  return std::nullopt;
}

/// The value of the first "key : value" line of /proc/cpuinfo or /proc/meminfo.
std::optional<std::string> proc_value(const char* path, std::string_view key) {
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    if (colon != std::string::npos && start != std::string::npos) return line.substr(start);
  }
  return std::nullopt;
}

int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

}  // namespace

std::string cpu_model() { return proc_value("/proc/cpuinfo", "model name").value_or("unknown"); }

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int64_t last_level_cache_bytes() {
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const auto size = first_line(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    if (size) largest = std::max(largest, parse_size(*size));
  }
  return largest > 0 ? largest : int64_t{32} << 20;
}

int64_t available_memory_bytes() {
  const auto text = proc_value("/proc/meminfo", "MemAvailable");
  return text ? std::strtoll(text->c_str(), nullptr, 10) * 1024 : 0;
}

std::optional<std::string> cpu_governor() {
  return first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
}

double load_average() {
  double loads[1] = {0};
  return getloadavg(loads, 1) == 1 ? loads[0] : 0;
}

int64_t run_delay_ns(int pid) {
  const std::string path = pid == 0 ? "/proc/thread-self/schedstat" : fmt::format("/proc/{}/schedstat", pid);
  std::ifstream in(path);
  int64_t running = 0, waiting = 0;
  return in >> running >> waiting ? waiting : 0;
}

std::optional<double> cpu_mhz() {
  const auto text = proc_value("/proc/cpuinfo", "cpu MHz");
  if (!text) return std::nullopt;
  return std::strtod(text->c_str(), nullptr);
}

std::string cpu_device_name(int threads) {
  std::string model = cpu_model();
  for (char& c : model) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
    if (!is_plain) c = '-';
  }
  std::string tidy;
  for (char c : model) {
    if (c != '-' || (!tidy.empty() && tidy.back() != '-')) tidy += c;
  }
  while (tidy.ends_with('-')) tidy.pop_back();
  return fmt::format("cpu:{}:{}c", tidy.empty() ? "unknown" : tidy, threads);
}

std::map<std::string, std::string> environment_facts() {
  utsname system{};
  uname(&system);
  std::map<std::string, std::string> facts{
      {"cpu", cpu_model()},
      {"cpus", std::to_string(usable_cpus())},
      {"kernel", fmt::format("{} {}", system.sysname, system.release)},
      {"machine", system.machine},
      {"compiler", __VERSION__},
      {"llc_bytes", std::to_string(last_level_cache_bytes())},
      {"microcode", proc_value("/proc/cpuinfo", "microcode").value_or("unknown")},
      {"governor", cpu_governor().value_or("not readable")},
      {"clocksource",
       first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource").value_or("unknown")},
      {"virtualised",
       proc_value("/proc/cpuinfo", "flags").value_or("").find("hypervisor") != std::string::npos ? "yes" : "no"},
  };
  return facts;
}

}  // namespace tilewright::measure
