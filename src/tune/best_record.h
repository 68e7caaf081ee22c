// best.json: the saved winners of a tuning, one configuration per bucket of shapes, and everything they depend on.
//
// Guarantees: the text is canonical and carries its own SHA-256; a text that differs in one byte from what was written
// is refused (E1653); a record made from another source, space, toolchain, arch, device, driver or harness is refused
// with the fields named. `find` gives the first bucket whose condition holds, which is how dispatch picks a
// configuration.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tune/session.h"

namespace tilewright::tune {

struct BestBucket {
  std::string when;                                ///< a constraint over dimensions: "M <= 128"; empty always holds
  nlohmann::json dims = nlohmann::json::object();  ///< the shape that was measured
  nlohmann::json made_from = nlohmann::json::object();  ///< how to open it again: candidate, shape, dtype, space file
  Identity identity;
  std::string space_digest;
  Config config;
  double median_ms = 0;
  double ci_low_ms = 0, ci_high_ms = 0;  ///< [min, max] of process medians
  int processes = 0;
  int64_t samples = 0;
  std::string artefact_digest;
  std::string output_digest;
  double default_median_ms = 0;  ///< 0: the default has no correct result
  bool incumbent_kept = false;
  std::string why;
  double weight = 1;  ///< share of the traffic's requests

  friend bool operator==(const BestBucket&, const BestBucket&) = default;
};

struct TuningCost {
  int64_t trials = 0, points = 0, pruned = 0;
  double wall_ms = 0, compile_ms = 0;
  uint64_t seed = 1;
  std::map<std::string, int64_t> states;
  friend bool operator==(const TuningCost&, const TuningCost&) = default;
};

struct BestRecord {
  std::vector<BestBucket> buckets;
  TuningCost cost;
  double delta = 0.02;
  nlohmann::json traffic;  ///< of which traffic the weights are, or null

  const BestBucket* find(const std::vector<std::pair<std::string, int64_t>>& dims) const;
  friend bool operator==(const BestRecord&, const BestRecord&) = default;
};

BestBucket make_bucket(const TuneOutcome& outcome, const Identity& identity, const Space& space);

/// Canonical text with its digest.
std::string write_record(const BestRecord& record);
/// E1653 unless the text is byte for byte what write_record wrote.
Result<BestRecord> read_record(const std::string& text);
Result<BestRecord> load_record(const std::filesystem::path& path);
/// The digest inside the text of a record.
std::string record_digest(const BestRecord& record);

/// E1653 with every differing field.
Status verify_bucket(const BestBucket& bucket, const Identity& here, const std::string& space_digest);
/// Compiles and runs the bucket's configuration once more: artefact and output bits must be the recorded ones (E1653).
Status verify_artefact(const BestBucket& bucket, const Space& space, TrialRunner& runner, const TrialLimits& limits);

struct ReplayResult {
  measure::ProcessSummary now;
  double low_ms = 0, high_ms = 0;  ///< the stored interval widened by δ
  bool is_inside = false;
};
Result<ReplayResult> replay_bucket(const BestBucket& bucket, const Space& space, TrialRunner& runner,
                                   const TrialLimits& limits, double delta);

}  // namespace tilewright::tune
