// A saved winner opened again: the workload, space and runner a bucket of best.json was made with.
#pragma once

#include <memory>
#include <string>

#include "bench/candidate_trials.h"
#include "dispatch/pinned.h"
#include "tune/best_record.h"

namespace tilewright::tools {

struct WinnerPlaces {
  std::string candidate, space;  ///< where they are now; as recorded when empty
  std::string kernel_file;       ///< of a recorded `tile:` candidate, where its file is now; as recorded when empty
  std::string out = "out";
  int threads = 1;
};

struct SavedWinner {
  tune::Space space;
  std::unique_ptr<bench::CandidateTrials> runner;
};

/// The text of a space file; E1650 when none is named or it is not JSON.
Result<nlohmann::json> read_space(const std::string& path);
/// `question` is that of a kernel's own reference, as to_json gives it; null for every other workload.
Result<bench::Workload> parse_workload_text(const std::string& shape, const std::string& dtype,
                                            const nlohmann::json& question = nullptr);
Result<SavedWinner> open_winner(const tune::BestBucket& bucket, const candidate::Kinds& kinds,
                                const WinnerPlaces& places);

/// Pinned dispatch over a best.json: each bucket compared with what its candidate and space are now.
dispatch::Pinned open_pinned(const std::string& best, const candidate::Kinds& kinds, const WinnerPlaces& places);
/// A workload's dimensions as dispatch takes them.
dispatch::Dims dims_of(const bench::Workload& workload);

}  // namespace tilewright::tools
