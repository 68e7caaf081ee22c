// R0: what a workload's outputs are, in float64 from the quantised inputs; and the same operators in the declared
// types, which stand in for the framework's operator (R1) where there is none.
//
// Independent of everything it judges: plain loops over the formula, no tiling of keys, no online softmax, no library.
// Costs: matrix products run at vector speed on all cores; beyond `max_flops` only a seeded sample of output rows is
// computed (first, last, and random ones) and `rows` says which.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/tensor_file.h"
#include "bench/oracle/workload.h"

namespace tilewright::bench {

/// One output, as far as it was computed.
struct ExpectedOutput {
  std::vector<double> values;     ///< of the rows computed, in order; indices for outputs of indices
  std::vector<double> magnitude;  ///< Σ|a·b| per value where the output is a sum of products; else empty
  std::vector<double> bound;      ///< of a kernel's own reference: of the error of each value before it is stored
  int64_t row_width = 1;          ///< values per row
  std::vector<int64_t> rows;      ///< rows computed, ascending; empty: all of them
};

struct Expected {
  std::vector<ExpectedOutput> outputs;  ///< in the order of the output arguments
  int64_t terms = 0;                    ///< K of the sums behind `magnitude`
  double extra_roundoff = 0;            ///< relative error of a term before it is summed (dequantised weights, tf32)
  std::string failure;                  ///< why a kernel's own reference could not be computed; empty: it was
  double lipschitz = 1;                 ///< of what is applied to the sum before it is stored (an activation)
};

struct ReferenceOptions {
  double max_flops = 6e10;
  uint64_t sample_seed = 1;
};

Expected evaluate_oracle(const Workload& workload, std::span<const HostTensor> inputs,
                         const ReferenceOptions& options = {});

/// The operator as a careful implementation computes it: sums in the accumulation type, attention's probabilities
/// rounded to the input type before the second product, every output rounded once. Values of the same rows as
/// `evaluate_oracle` gives.
std::vector<ExpectedOutput> evaluate_declared(const Workload& workload, std::span<const HostTensor> inputs,
                                              const ReferenceOptions& options = {});

}  // namespace tilewright::bench
