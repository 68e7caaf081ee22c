// Someone else's table: read, checked against its own arithmetic and against physics, kept apart from every
// measurement.
//
// Reads CSV and Markdown pipe tables. A column is understood by its heading and unit: "Latency (s)", "time_ms", "warm
// (us)", "TFLOPS", "TFLOP/s", "GB/s"; a shape by a workload key in a column `shape`, or by M, N, K. Guarantee: an
// imported row becomes a cell in state `claimed`, which no table of measurements and no decision accepts. Does not:
// correct a claim; lints are written beside it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "bench/record/cell.h"

namespace tilewright::decision {

struct ClaimRow {
  int line = 0;
  std::string shape;  ///< a workload key, or what the table calls it
  std::string label;  ///< the other text columns: "kernel=ours"
  std::optional<double> time_ms;
  std::optional<double> tflops, gbytes_per_s;
  std::optional<double> flops, bytes;  ///< of the shape, when it is understood
};

struct ClaimTable {
  std::string time_heading, rate_heading;
  std::vector<ClaimRow> rows;
};

/// `dtype` is that of the shapes ("f16"). E1660 with the line.
Result<ClaimTable> parse_claims(std::string_view text, const std::string& name, const std::string& dtype);

struct Lint {
  std::string code;  ///< "unit_mismatch×1000", "physics", "inconsistent", "unchecked"
  int line = 0;      ///< 0: of the whole table
  std::string message;
};

struct Peak {
  double tflops = 0, gbytes_per_s = 0;
};
/// The data sheet's dense peak; nullopt for a device or dtype without a row in device_peak.def.
std::optional<Peak> find_peak(std::string_view device, std::string_view dtype);

std::vector<Lint> lint_claims(const ClaimTable& table, const std::optional<Peak>& peak);

struct ClaimSource {
  std::string source, commit, as_of, script, environment, device, candidate, dtype;
};

/// One claimed warm_ms cell per row with a time; `detail` carries the source and the lints of the row.
std::vector<bench::Cell> claimed_cells(const ClaimTable& table, const std::vector<Lint>& lints,
                                       const ClaimSource& source);

}  // namespace tilewright::decision
