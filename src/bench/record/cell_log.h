// cells.jsonl: the append-only file of everything measured, one JSON object per line.
//
// Guarantees: an appended line is on disk (fsync) when `append` returns; a line is whole or not there: a torn last line
// left by a killed process is cut off when the file is opened for writing; a write that fails (a full disk) leaves the
// file as it was. `seq` increases by one. Only one writer at a time holds a file (flock, E3303). Does not: interpret
// cells beyond their syntax.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/record/cell.h"

namespace tilewright::bench {

struct CellFile {
  std::vector<Cell> cells;
  bool had_torn_line = false;  ///< the last line was incomplete and was left out
};

/// Every complete line; E1602 with the line number when one does not parse. A missing file is E3300.
Result<CellFile> read_cells(const std::filesystem::path& path);

/// The last cell of each key, in order of first appearance.
std::vector<Cell> latest_cells(const std::vector<Cell>& cells);

class CellLog {
 public:
  /// Creates the file when it is not there.
  static Result<CellLog> open(const std::filesystem::path& path);
  CellLog(CellLog&& other) noexcept;
  CellLog& operator=(CellLog&& other) noexcept;
  ~CellLog();

  /// Gives the cell its seq and writes it; E3302 on a full disk, E3301 otherwise.
  Status append(Cell& cell);
  const std::vector<Cell>& cells() const { return cells_; }  ///< read at open and appended since
  const std::filesystem::path& path() const { return path_; }

 private:
  CellLog() = default;
  std::filesystem::path path_;
  int fd_ = -1;
  std::vector<Cell> cells_;
  uint64_t next_seq_ = 1;
};

}  // namespace tilewright::bench
