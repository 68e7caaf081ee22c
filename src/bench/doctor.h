// What would disturb a measurement on this machine, found before the first one.
#pragma once

#include <string>
#include <vector>

namespace tilewright::bench {

enum class Severe { Fine, Warning, Broken };

struct DoctorLine {
  Severe severe = Severe::Fine;
  std::string what;
  std::string advice;
};

/// Everything looked at: processor, clocks, load, memory, governor, limits, noise of a fixed loop. Takes about 0.3 s.
std::vector<DoctorLine> examine_machine(int threads);

/// Only what `bench` should print as notes.
std::vector<std::string> machine_warnings(int threads);

}  // namespace tilewright::bench
