// The benchmark's own test: thirteen candidates that cheat, each run through the stages of a small bench; none may come
// out with a measured warm time and a measured compile time. An honest twin must.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::bench {

struct CheatLine {
  std::string name;  ///< "cached_replay"; "honest" for the control
  std::string what;  ///< in words
  bool caught = false;
  std::string by;  ///< the stage and reason that caught it
};

struct CheatSelftest {
  std::vector<CheatLine> cheats;  ///< 13
  CheatLine control;              ///< `caught` must be false
  bool passed() const;
};

/// `library` is cheats.so, installed beside the command.
Result<CheatSelftest> run_cheat_selftest(const std::string& executable, const std::string& library);

}  // namespace tilewright::bench
