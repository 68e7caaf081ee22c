// An append-only text file of lines that survives kill -9 and a full disk.
//
// Guarantees: an appended line is on disk (fsync) when `append` returns; a torn last line, left by a killed process, is
// cut off on opening; a write that fails leaves the file as it was; one writer at a time (flock, E3303). Does not: know
// what the lines mean.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright {

class LineLog {
 public:
  /// Creates the file, and its folder, when they are not there.
  static Result<LineLog> open(const std::filesystem::path& path);
  LineLog(LineLog&& other) noexcept;
  LineLog& operator=(LineLog&&) = delete;
  ~LineLog();

  /// `line` holds no newline. E3302 on a full disk, E3301 otherwise.
  Status append(std::string_view line);
  const std::vector<std::string>& lines() const { return lines_; }  ///< whole lines found at opening
  const std::filesystem::path& path() const { return path_; }

 private:
  LineLog() = default;
  std::filesystem::path path_;
  int fd_ = -1;
  std::vector<std::string> lines_;
};

/// The whole lines of a file, without the right to write; E3300 when it cannot be read.
Result<std::vector<std::string>> read_lines(const std::filesystem::path& path);

}  // namespace tilewright
