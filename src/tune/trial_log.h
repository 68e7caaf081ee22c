// tune.jsonl: a header line with the digests that make trials comparable, then one trial per line.
//
// Guarantees: a line is on disk (fsync) when append returns; a torn last line, left by a killed process, is cut off on
// opening; a log of another space, source, toolchain, arch, device, driver or harness is refused with the differing
// fields (E1651); one writer at a time (E3303).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
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
  TrialLog(TrialLog&& other) noexcept;
  TrialLog& operator=(TrialLog&&) = delete;
  ~TrialLog();

  Status append(const Trial& trial);
  const std::vector<Trial>& resumed() const { return resumed_; }  ///< found at opening

 private:
  TrialLog() = default;
  Status write_line(const std::string& line);
  std::filesystem::path path_;
  int fd_ = -1;
  std::vector<Trial> resumed_;
};

}  // namespace tilewright::tune
