// cost.jsonl: what a kernel costs people (declared) and what keeping it alive costs machines (measured). Append-only.
//
// A declared entry is somebody's word, with a name and a note; it is never mixed with measurements. A wrong entry is
// corrected, once, by one of the same candidate that names it (`corrects`), never by editing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace tilewright::decision {

enum class CostKind : uint8_t { Build, Port, Validate, Upgrade, Incident };
std::string_view name(CostKind kind);
std::optional<CostKind> parse_cost_kind(std::string_view text);

struct CostEntry {
  uint64_t seq = 0;  ///< line in the file, from 1
  std::string candidate;
  CostKind kind = CostKind::Build;
  bool is_measured = false;                      ///< false: declared by a person
  double hours = 0;                              ///< of a person (declared)
  double wall_ms = 0;                            ///< of a machine (measured)
  int64_t checked = 0, failures = 0, stale = 0;  ///< records, by `validate` (measured)
  std::string by, note, at;
  uint64_t corrects = 0;  ///< seq of the entry this one replaces; 0 = none
};

nlohmann::json to_json(const CostEntry& entry);

/// E1662 with the line when one is malformed.
Result<std::vector<CostEntry>> read_costs(const std::filesystem::path& path);
/// Refuses negative or non-finite hours, a declared entry without a name, and a `corrects` that names no entry, another
/// candidate's, a measured one, or one that is corrected already. So does reading.
Status append_cost(const std::filesystem::path& path, CostEntry entry);

struct CostSummary {
  double hours = 0;                              ///< declared, corrections applied
  double upkeep_hours = 0;                       ///< of them validate, upgrade and incident
  double adoption_hours = 0;                     ///< build and port
  double validate_ms = 0;                        ///< measured machine time of the latest validation
  int64_t failures = 0, stale = 0, checked = 0;  ///< of the latest validation
  int64_t declared_entries = 0, measured_entries = 0;
};
/// Entries of the candidate (all of them when it is empty).
CostSummary summarise(const std::vector<CostEntry>& entries, std::string_view candidate);

}  // namespace tilewright::decision
