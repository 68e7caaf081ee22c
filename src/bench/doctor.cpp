#include "bench/doctor.h"

#include <fmt/core.h>

#include "measure/clock.h"
#include "measure/machine.h"
#include "measure/order_statistics.h"

namespace tilewright::bench {
namespace {

/// A fixed piece of arithmetic, timed many times: what its spread is, no kernel's can be below.
std::vector<double> time_fixed_loop() {
  const measure::FastClock clock;
  std::vector<double> samples;
  for (int i = 0; i < 200; ++i) {
    const int64_t start = clock.now_ns();
    double x = 1;
    for (int k = 0; k < 200'000; ++k) x = x * 0.999999 + 1e-7;
    volatile double sink = x;
    static_cast<void>(sink);
    samples.push_back(static_cast<double>(clock.now_ns() - start) * 1e-6);
  }
  return measure::sorted(samples);
}

DoctorLine look_at_noise() {
  const std::vector<double> samples = time_fixed_loop();
  const double spread = measure::percentile(samples, 0.95) / measure::median(samples) - 1;
  const std::string text =
      fmt::format("noise: a fixed loop of {:.2f} ms varies {} (95th percentile over median)", measure::median(samples),
                  spread > 1 ? fmt::format("{:.1f}-fold", 1 + spread) : fmt::format("by {:.1f} %", 100 * spread));
  if (spread > 0.10)
    return {Severe::Warning, text, "other work runs here; results will be noisy and some INCONCLUSIVE"};
  return {Severe::Fine, text, ""};
}

DoctorLine look_at_load(int threads) {
  const double load = measure::load_average();
  const std::string text = fmt::format("load average {:.2f} on {} usable processors", load, measure::usable_cpus());
  if (load > 0.5 * measure::usable_cpus() && threads > 0)
    return {Severe::Warning, text, "wait until the machine is idle, or expect wide intervals"};
  return {Severe::Fine, text, ""};
}

DoctorLine look_at_governor() {
  const auto governor = measure::cpu_governor();
  if (!governor) return {Severe::Fine, "frequency governor: not readable (usual in a virtual machine)", ""};
  if (*governor == "performance") return {Severe::Fine, "frequency governor: performance", ""};
  return {Severe::Warning, fmt::format("frequency governor: {}", *governor),
          "sudo cpupower frequency-set -g performance"};
}

}  // namespace

std::vector<DoctorLine> examine_machine(int threads) {
  std::vector<DoctorLine> lines;
  lines.push_back({Severe::Fine,
                   fmt::format("{} · last-level cache {} MiB", measure::cpu_device_name(threads),
                               measure::last_level_cache_bytes() >> 20),
                   ""});
  const measure::FastClock clock;
  lines.push_back(
      {Severe::Fine,
       fmt::format("clock: {}, {:.0f} ns between two reads",
                   clock.uses_counter() ? "invariant time-stamp counter" : "system call", clock.overhead_ns()),
       ""});
  lines.push_back(look_at_governor());
  lines.push_back(look_at_load(threads));
  const int64_t memory = measure::available_memory_bytes();
  lines.push_back({memory < (int64_t{1} << 30) ? Severe::Warning : Severe::Fine,
                   fmt::format("available memory {:.1f} GiB", static_cast<double>(memory) / (1 << 30)),
                   memory < (int64_t{1} << 30) ? "large shapes will not fit" : ""});
  if (threads > measure::usable_cpus()) {
    lines.push_back({Severe::Warning,
                     fmt::format("{} threads on {} usable processors", threads, measure::usable_cpus()),
                     "use --threads"});
  }
  lines.push_back(look_at_noise());
  return lines;
}

std::vector<std::string> machine_warnings(int threads) {
  std::vector<std::string> out;
  for (const DoctorLine& line : examine_machine(threads)) {
    if (line.severe != Severe::Fine) out.push_back(fmt::format("{} ({})", line.what, line.advice));
  }
  return out;
}

}  // namespace tilewright::bench
