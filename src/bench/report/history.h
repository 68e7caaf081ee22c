// How a record changes over commits: an SQLite file with one row per (commit, subject, candidate, stage).
//
// Adding the same commit again replaces its rows, so a repeated run corrects and never doubles. Only measured cells
// enter.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "bench/record/cell.h"

namespace tilewright::report {

struct HistoryPoint {
  std::string commit, at;
  bench::Subject subject;
  std::string candidate;
  bench::Stage stage = bench::Stage::Warm;
  double value = 0;
  std::optional<double> low, high;
};

struct HistoryFilter {
  std::string shape, candidate;  ///< empty: all
  bench::Stage stage = bench::Stage::Warm;
  int64_t last = 20;  ///< commits
};

class History {
 public:
  /// Creates the file; E1664 when it is not a history or cannot be written.
  static Result<History> open(const std::filesystem::path& path);

  /// Replaces what is known of `commit`.
  Status add(const std::string& commit, const std::vector<bench::Cell>& cells);
  /// Oldest first.
  Result<std::vector<HistoryPoint>> read(const HistoryFilter& filter) const;

 private:
  struct Closer {
    void operator()(void* handle) const;
  };
  explicit History(void* handle) : database_(handle) {}
  std::unique_ptr<void, Closer> database_;
};

}  // namespace tilewright::report
