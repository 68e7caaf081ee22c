// A small seeded generator whose numbers are the same on every machine (the standard's distributions are not).
// splitmix64 by Steele, Lea and Flood (2014); bounded integers by rejection, so they are unbiased.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace tilewright::measure {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next();
  uint64_t below(uint64_t bound);  ///< uniform in [0, bound), bound ≥ 1
  double uniform();                ///< in [0, 1)
  double normal();                 ///< mean 0, variance 1 (Box and Muller)

  template <typename T>
  void shuffle(std::span<T> items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace tilewright::measure
