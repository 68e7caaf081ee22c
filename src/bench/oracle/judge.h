// Whether an output is right: the rules, as pure functions of numbers already computed.
//
//   pattern   NaN and infinities are where the oracle has them; a value within the bound of the overflow threshold may
//   differ relative  max|y−y64| ≤ 2·max|yR1−y64| + u_out·max|y64|, and RMSE ≤ m·RMSE(R1) + u_out·rms(y64),
//             m = 2, or 3 for bf16 or fewer than 1000 values
//   absolute  (sums of products) |y−y64| ≤ L·(γ_K(u_acc) + extra)·Σ|a·b| + u_out·|y64| for every value, γ_K =
//   K·u/(1−K·u)
//             (Higham, Accuracy and Stability of Numerical Algorithms, §3.1), L the slope of the epilogue; where
//             K·u_acc > 0.1 the bound is called vacuous, in writing, and the relative rule decides alone
//   exact     integer outputs are equal
//   indices   an index is judged by the value it selects, so ties may be broken either way
// Mismatches allowed: none. Does not: run anything, or look at canaries (guarded_tensors.h does).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/tensor_file.h"
#include "bench/oracle/reference.h"

namespace tilewright::bench {

struct Finding {
  std::string rule;  ///< "pattern", "relative", "absolute", "exact", "indices", …
  std::string text;  ///< with the numbers and the place
};

struct Judgement {
  std::vector<Finding> findings;  ///< empty: accepted
  double max_error = 0, rmse = 0;
  double max_error_r1 = 0, rmse_r1 = 0;
  double max_allowed = 0, rmse_allowed = 0;
  double worst_of_absolute = 0;  ///< largest |error| / absolute bound; 0 when the rule does not apply
  bool absolute_applies = false;
  bool absolute_is_vacuous = false;
  int64_t values = 0;
  int64_t mismatches = 0;  ///< values that break a per-value rule

  bool accepted() const { return findings.empty(); }
};
nlohmann::json to_json(const Judgement& judgement);

/// One floating or integer output. `r1` holds the values of the same rows (R1, or the declared-types evaluation).
struct JudgeInput {
  const Workload& workload;
  const Expected& expected;
  size_t output = 0;
  std::span<const double> produced;  ///< of the computed rows
  std::span<const double> r1;
};
Judgement judge_values(const JudgeInput& input);
/// Output `output` of indices into the rows of the first input: argreduce, topk.
Judgement judge_indices(const JudgeInput& input, const HostTensor& first_input);

/// The computed rows of a whole tensor, as doubles.
std::vector<double> rows_of(const HostTensor& tensor, const ExpectedOutput& expected);

}  // namespace tilewright::bench
