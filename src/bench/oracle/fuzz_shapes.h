// Small shapes that break kernels: tile ± 1, 1, primes, non-multiples, sq ≠ sk, queries that see no key, sequences of
// length 0. A kernel's own question is asked at extents its shapes and its expression allow (`K // 2` takes even K),
// small enough that 25 of them take no longer than one real one.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/oracle/workload.h"

namespace tilewright::bench {

/// At least 25 workloads with the operator, layout, mask kind, epilogue and dtypes of `like`, around tile sizes 16 to
/// 128; the fixed ones first, then random ones from `seed`. All different.
std::vector<Workload> fuzz_shapes(const Workload& like, uint64_t seed);

}  // namespace tilewright::bench
