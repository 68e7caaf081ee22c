// Everything a report shows, read once from the folder of a record. Missing files are missing parts of the report, not
// errors; a file that is there and damaged is an error.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "bench/decision/cost_log.h"
#include "bench/record/cell.h"

namespace tilewright::report {

struct ReportInput {
  std::string title = "Kernel lifecycle report";
  std::string folder;                      ///< as the user wrote it; for commands
  std::vector<bench::Cell> cells;          ///< whole record, by seq
  nlohmann::json decision;                 ///< decision.json or null
  std::vector<nlohmann::json> trials;      ///< tune.jsonl without its header
  nlohmann::json traffic;                  ///< traffic.json (a snapshot) or null
  nlohmann::json service;                  ///< service.json: simulations or replays with timelines, or null
  std::vector<decision::CostEntry> costs;  ///< cost.jsonl
  std::string written_at;
};

Result<ReportInput> load_report_input(const std::filesystem::path& folder);

/// The cells arranged for reading.
struct ReportView {
  const ReportInput& input;
  bench::Subject subject;               ///< of the decision, else of the first measured cell
  std::vector<std::string> candidates;  ///< of this subject; the judged one first, references last, else by warm_ms
  std::string stale;                    ///< why the decision no longer speaks of these cells; empty: it does
  std::vector<bench::Cell> latest;      ///< measured, not-run and failed; claims are apart
  std::vector<bench::Cell> claims;

  explicit ReportView(const ReportInput& report_input);
  const bench::Cell* find(const std::string& candidate, bench::Stage stage) const;  ///< of `subject`; null = no cell
  const bench::Cell* measured(const std::string& candidate, bench::Stage stage) const;  ///< null unless measured
  int colour(const std::string& candidate) const;                                       ///< 0..7, fixed by position
};

}  // namespace tilewright::report
