// model_ms as a cell of the benchmark: measured only when the named model really calls the operator at this shape and
// dtype.
#pragma once

#include "bench/record/cell.h"
#include "models/comparison.h"

namespace tilewright::models {

struct ModelCellRequest {
  bench::CellKey key;  ///< subject, candidate, Stage::Model
  std::string model;   ///< "tiny", "125m"
  int threads = 1;
  int rounds = 20;
  uint64_t seed = 1;
  int64_t prompt_tokens =
      0;  ///< 0: the M of a gemm, the SQ of attention, the rows of a norm, so that prefill meets the shape
  std::function<Result<candidate::CandidatePtr>()> make;
  candidate::OpenOptions open;
  std::string python = "python3";
};

/// The median time of the whole run with every call of the operator that the candidate takes swapped; detail holds the
/// comparison, calls per forward and share. `not-run (operator not in MODEL)` when no call has the subject's shape and
/// dtype.
bench::Cell measure_model_cell(const ModelCellRequest& request);

}  // namespace tilewright::models
