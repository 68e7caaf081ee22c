// The suite hopper: the table of what our kernels should reach on a Hopper GPU, measured, row by row (hopper.def).
//
// Guarantees: nobody is timed whose result was not accepted; a row that cannot run says why and the others go on; each
// finished row is written to `record` at once, and `resume` takes what the same program recorded there. The rows of one
// group share a process, so that their rivals are imported once; a fault costs its row.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::bench {

inline constexpr std::string_view kHopperSuite = "hopper";

struct HopperOptions {
  std::string executable;
  std::string filter;  ///< rows whose name contains this text
  std::string device = "cuda:0";
  std::filesystem::path record;  ///< JSON lines
  std::string program;           ///< what must be equal for a recorded row to count: a build, a version
  bool resume = false;
  int rounds = 3;      ///< of a race
  int processes = 20;  ///< of a cold compile
  uint64_t seed = 1;
  bool show_progress = true;
  int64_t timeout_ms = 120'000;
};

enum class HopperKind : uint8_t { Race, Cold, Rare, Launch };

/// One row of hopper.def.
struct HopperRow {
  HopperKind kind = HopperKind::Race;
  std::string name = {};  ///< "gemm gemm:8192x8192x8192:nt bf16": what --filter searches and a record is found by
  std::string group = {}, kernel = {}, workload = {}, dtypes = {};
  std::vector<std::string> rivals = {};
  bool is_flushed = false, in_graphs = false;
  double speed_goal = 0, rate_goal = 0;
  double most = 0;  ///< ms or ns
  int shapes = 0, compiles = 0;
};
std::vector<HopperRow> hopper_rows();

/// What was measured of a row, as the stages reported it, or why nothing was.
struct HopperRecord {
  nlohmann::json result;
  std::string not_run;
};

struct HopperReport {
  std::vector<HopperRow> rows;  ///< those wanted
  std::vector<HopperRecord> records;
  std::string device;  ///< "cuda:NVIDIA-H200:sm_90"
  std::string device_missing;
};

/// E1600 when no row has the filter's text.
Result<HopperReport> run_hopper_suite(const HopperOptions& options);

/// One line of the table.
struct HopperLine {
  std::string work = {}, ours = {}, spread = {}, rivals = {}, ratio = {}, goal = {};
  std::string state = {};  ///< met, missed, not-run or empty
};
std::vector<HopperLine> hopper_lines(const HopperReport& report);

std::string render_hopper(const HopperReport& report, bool markdown);
nlohmann::json to_json(const HopperReport& report);

}  // namespace tilewright::bench
