// The decisions that make one random case, as a list of numbers.
//
// A generator asks `pick`; fresh choices are drawn from a seed, replayed ones are read back and continue with 0. The
// generator puts the simplest alternative first, so that a shorter list of smaller numbers is a simpler case: shrinking
// works on the list and needs to know nothing about kernels.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace tilewright::fuzz {

class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}
  explicit Choices(std::vector<uint32_t> replayed) : made_(std::move(replayed)), is_replay_(true) {}

  /// A number in [0, n); 0 is the simplest.
  int pick(int n) {
    if (n <= 1) return 0;
    uint32_t v = 0;
    if (!is_replay_) {
      v = static_cast<uint32_t>(random_() % static_cast<uint64_t>(n));
      made_.push_back(v);
    } else if (next_ < made_.size()) {
      v = made_[next_++] % static_cast<uint32_t>(n);
    }
    return static_cast<int>(v);
  }
  /// True with the given probability; false is the simplest.
  bool chance(int percent) { return pick(100) >= 100 - percent; }
  template <typename C>
  const auto& one_of(const C& values) {
    return *(std::begin(values) + pick(static_cast<int>(std::size(values))));
  }

  const std::vector<uint32_t>& made() const { return made_; }

 private:
  std::mt19937_64 random_{0};
  std::vector<uint32_t> made_;
  size_t next_ = 0;
  bool is_replay_ = false;
};

}  // namespace tilewright::fuzz
