// objective.json: what a kernel must achieve to be adopted, agreed on before anything is measured.
//
//   {"candidate": "ours", "metric": "warm_ms", "percentile": "p50", "min_gain": 0.05, "slo_ms": 20, "peak_mb": 512,
//    "warmup_s": 30, "calls_per_day": 1e6, "horizon_days": 180, "starts_per_day": 10, "upgrades_per_year": 4,
//    "human_rate_per_hour": 120, "machine_rate_per_hour": 4, "human_cost": "included",
//    "tuning_cost": "included",
//    "accepted_by": "A. Reader", "accepted_on": "2026-01-31"}
//
// Guarantees: an unknown field is refused, so that a misspelt cap cannot pass unseen; the digest is over the file's
// bytes. `register_objective` writes that digest beside the cells; an objective whose digest was not there before the
// first measurement is post-hoc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace tilewright::decision {

struct Objective {
  std::string candidate;             ///< required
  std::string shape, dtype, device;  ///< empty: the only one among the candidate's cells
  std::string reference;             ///< must be measured; the fastest correct rival is the reference all the same
  std::string metric = "warm_ms";    ///< or "model_ms"
  std::string percentile = "p50";    ///< or "p99"
  double min_gain = 0.05;            ///< 1 − candidate / reference
  std::optional<double> slo_ms;      ///< p99 of the metric
  std::optional<double> peak_mb;
  std::optional<double> warmup_s;  ///< process start to first warm call
  double calls_per_day = 0;        ///< required
  double horizon_days = 0;         ///< required
  double starts_per_day = 1;
  double upgrades_per_year = 4;
  std::optional<double> human_rate_per_hour, machine_rate_per_hour;
  bool is_human_cost_excluded = false;
  bool is_tuning_cost_excluded = false;  ///< nothing is tuned: an upgrade costs a compile
  std::string accepted_by, accepted_on;
  std::string digest;  ///< SHA-256 of the text

  bool is_accepted() const;  ///< somebody's name and a day
};

/// E1661 names the field.
Result<Objective> parse_objective(std::string_view text, const std::string& name);
Result<Objective> load_objective(const std::filesystem::path& path);
/// A commented-by-example template with every field.
std::string objective_template(const std::string& candidate);

struct Registration {
  std::string digest;
  std::string at;
  uint64_t measured_before = 0;  ///< measured cells the record already had when it was written
  std::string superseded_at;     ///< when another objective of the same case was registered after it, before measuring
};

/// A day of the calendar, written like 2026-01-31.
bool is_date(const std::string& text);
/// From one date like 2026-01-31 to another; 0 when either is none.
int days_between(const std::string& from, const std::string& to);

/// Appends to `<folder>/objectives.jsonl`; the digest that is there already, and was not superseded, is left as it is.
Status register_objective(const std::filesystem::path& folder, const Objective& objective, uint64_t measured_before);
/// The registration of this digest: the last one made before measuring, else the first; or nothing.
Result<std::optional<Registration>> find_registration(const std::filesystem::path& folder, const Objective& objective);

}  // namespace tilewright::decision
