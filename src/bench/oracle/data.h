// Input data of a workload: seeded, the same on every machine and for any number of threads, quantised to the declared
// dtype.
//
// Element i of a tensor is a function of (seed, tensor name, i) alone. `normal` is the default and the only kind
// besides `uniform` and `large` on which a float kernel may be called measured: zeros and small integers make
// accumulation in the wrong type exact and draw less power, so they hide errors and flatter times
// (supports_measurement).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/tensor_file.h"
#include "bench/oracle/arguments.h"

namespace tilewright::bench {

enum class Distribution : uint8_t {
  Normal,    ///< N(0, 1)
  Uniform,   ///< [−1, 1)
  Large,     ///< N(0, 1) · 64: stresses exponentials and overflow
  Specials,  ///< normal, with about one in 64 elements ±0, subnormal, ±largest, ±Inf or NaN
  Integers,  ///< −8 … 8
  Zeros,
};
std::string_view name(Distribution distribution);
std::optional<Distribution> parse_distribution(std::string_view text);

struct DataSpec {
  Distribution distribution = Distribution::Normal;
  uint64_t seed = 1;
  friend bool operator==(const DataSpec&, const DataSpec&) = default;
};

/// False for zeros, integers and specials when the input is a float type: no timing on them may be `measured`.
bool supports_measurement(const DataSpec& data, DType in);

/// One tensor; integers are uniform over their range (i8: −127 … 127), or over −8 … 8 beyond 8 bits.
HostTensor make_tensor(const Argument& argument, const DataSpec& data);
/// All inputs of the workload, in order; `lengths` tensors hold the lengths.
std::vector<HostTensor> make_inputs(const Workload& workload, const DataSpec& data);

}  // namespace tilewright::bench
