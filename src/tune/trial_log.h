// tune.jsonl: a header line with the digests that make trials comparable, then one trial per line.
//
// Guarantees: those of base/line_log.h; a log of another space, source, toolchain, arch, device, driver or harness is
// refused with the differing fields (E1651).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/line_log.h"
#include "tune/runner.h"
#include "tune/trial.h"

namespace tilewright::tune {

struct LogHeader {
  Identity identity;
  std::string space_digest;
  uint64_t seed = 1;
};

class TrialLog {
 public:
  /// Creates the file, or resumes an equal one.
  static Result<TrialLog> open(const std::filesystem::path& path, const LogHeader& header);
  Status append(const Trial& trial);
  const std::vector<Trial>& resumed() const { return resumed_; }  ///< found at opening

 private:
  explicit TrialLog(LineLog lines) : lines_(std::move(lines)) {}

  LineLog lines_;
  std::vector<Trial> resumed_;
};

}  // namespace tilewright::tune
