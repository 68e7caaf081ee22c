// A saved winner opened again: the workload, space and runner a bucket of best.json was made with.
#pragma once

#include <memory>
#include <string>

#include "bench/candidate_trials.h"
#include "tune/best_record.h"

namespace tilewright::tools {

struct WinnerPlaces {
  std::string candidate, space;  ///< where they are now; as recorded when empty
  std::string out = "out";
  int threads = 1;
};

struct SavedWinner {
  tune::Space space;
  std::unique_ptr<bench::CandidateTrials> runner;
};

/// The space of a file for this workload; E1650 when none is named.
Result<tune::Space> load_space(const std::string& path, const bench::Workload& workload);
Result<bench::Workload> parse_workload_text(const std::string& shape, const std::string& dtype);
Result<SavedWinner> open_winner(const tune::BestBucket& bucket, const candidate::Kinds& kinds,
                                const WinnerPlaces& places);

}  // namespace tilewright::tools
