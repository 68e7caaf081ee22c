// A loop over ranges on all cores, for the oracle's own heavy arithmetic. Results never depend on the number of
// threads: the body writes only what belongs to its range.
#pragma once

#include <cstdint>
#include <functional>

namespace tilewright::bench {

/// Calls body(begin, end) for consecutive ranges of at most `grain` that cover [0, count).
void for_each_range(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

}  // namespace tilewright::bench
