// A workload of independent rows, judged on some of them: all rows of a gigabyte would cost the oracle a minute.
#pragma once

#include <optional>
#include <vector>

#include "base/tensor_file.h"
#include "bench/oracle/workload.h"

namespace tilewright::bench {

struct RowSample {
  Workload workload;          ///< the same operator on `rows` alone
  std::vector<int64_t> rows;  ///< first, last and seeded ones, ascending
  std::vector<HostTensor> inputs;

  /// The sampled rows of outputs of the whole workload.
  std::vector<HostTensor> of_outputs(const std::vector<HostTensor>& outputs) const;
};

/// Nothing when the operator's rows are not independent, or there are few of them.
std::optional<RowSample> sample_rows(const Workload& workload, const std::vector<HostTensor>& inputs, uint64_t seed);

/// True when some element of a float output still holds the bytes it was poisoned with.
bool has_unwritten(const std::vector<HostTensor>& outputs);

}  // namespace tilewright::bench
