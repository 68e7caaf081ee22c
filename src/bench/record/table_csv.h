// table.csv: one line per (shape, dtype, device) of one candidate, the eight columns everybody can read.
//
// Guarantees: write_table is byte-exact: header, LF, '.' decimals, "%.6g"; parse_table(write_table(t)) is t up to six
// digits; a metric is a number, `not-run` or `failed`, and an empty one reads as `not-run`. Does not: quote. Identity
// fields hold no comma, quote or space.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bench/record/cell.h"

namespace tilewright::bench {

enum class ReferenceOk : uint8_t { True, False, NotRun };

struct Metric {
  State state = State::NotRun;  ///< Measured, NotRun or Failed
  double value = 0;             ///< of Measured
  friend bool operator==(const Metric&, const Metric&) = default;
};

struct TableRow {
  Subject subject;
  ReferenceOk reference_ok = ReferenceOk::NotRun;
  Metric compile_ms, warm_ms, model_ms, peak_mb;
  friend bool operator==(const TableRow&, const TableRow&) = default;
};

inline constexpr std::string_view kTableHeader = "shape,dtype,device,reference_ok,compile_ms,warm_ms,model_ms,peak_mb";

std::string write_table(const std::vector<TableRow>& rows);
/// The header and the row `,,,,not-run,,,`.
std::string table_template();
/// E1601 with line, column and what was expected: also for a time beside a result that was not accepted, a second row
/// of one subject, and a shape that is no workload key. The template row (no identity at all) is skipped.
Result<std::vector<TableRow>> parse_table(std::string_view text);

/// The rows the latest cells of one candidate amount to. A wrong or unchecked result leaves every timing `not-run`;
/// claimed and simulated cells never enter.
std::vector<TableRow> make_table(const std::vector<Cell>& cells, std::string_view candidate);

/// Replaces the file by temporary file and rename, so a reader or a full disk never sees half of it. A link is followed
/// and stays; into what is no regular file (a device, a pipe) the text is written, and the node stays.
Status replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tilewright::bench
