#include "fuzz/shrink.h"

#include <algorithm>

namespace tilewright::fuzz {
namespace {

using List = std::vector<uint32_t>;

class Shrinker {
 public:
  Shrinker(List choices, const std::function<bool(const List&)>& still_fails, int tries)
      : best_(std::move(choices)), still_fails_(still_fails), tries_(tries) {}

  List run() {
    bool improved = true;
    while (improved && tries_ > 0) {
      improved = cut_tail();
      for (size_t width = std::max<size_t>(best_.size() / 2, 1); width >= 1 && tries_ > 0; width /= 2) {
        improved |= remove_chunks(width);
        improved |= zero_chunks(width);
      }
      improved |= lower_values();
    }
    return best_;
  }

 private:
  /// Keeps `candidate` when it is simpler and still fails.
  bool accept(const List& candidate) {
    if (candidate == best_ || tries_ <= 0) return false;
    --tries_;
    if (!still_fails_(candidate)) return false;
    best_ = candidate;
    return true;
  }

  /// Choices beyond the list's end are 0.
  bool cut_tail() {
    bool improved = false;
    while (!best_.empty() && best_.back() == 0) best_.pop_back();
    for (size_t keep = best_.size() / 2; keep < best_.size() && tries_ > 0;
         keep += std::max<size_t>((best_.size() - keep) / 2, 1)) {
      if (accept(List(best_.begin(), best_.begin() + static_cast<int64_t>(keep)))) improved = true;
    }
    return improved;
  }

  bool remove_chunks(size_t width) {
    bool improved = false;
    for (size_t at = 0; at + width <= best_.size() && tries_ > 0;) {
      List candidate = best_;
      candidate.erase(candidate.begin() + static_cast<int64_t>(at),
                      candidate.begin() + static_cast<int64_t>(at + width));
      if (accept(candidate)) {
        improved = true;
      } else {
        at += width;
      }
    }
    return improved;
  }

  bool zero_chunks(size_t width) {
    bool improved = false;
    for (size_t at = 0; at + width <= best_.size() && tries_ > 0; at += width) {
      List candidate = best_;
      std::fill_n(candidate.begin() + static_cast<int64_t>(at), width, 0u);
      improved |= accept(candidate);
    }
    return improved;
  }

  bool lower_values() {
    bool improved = false;
    for (size_t at = 0; at < best_.size() && tries_ > 0; ++at) {
      while (best_[at] > 0 && tries_ > 0) {
        List half = best_, less = best_;
        half[at] /= 2, --less[at];
        if (!accept(half) && !accept(less)) break;
        improved = true;
        if (at >= best_.size()) break;
      }
    }
    return improved;
  }

  List best_;
  const std::function<bool(const List&)>& still_fails_;
  int tries_;
};

}  // namespace

std::vector<uint32_t> shrink(std::vector<uint32_t> choices,
                             const std::function<bool(const std::vector<uint32_t>&)>& still_fails,
                             const ShrinkOptions& options) {
  return Shrinker(std::move(choices), still_fails, options.tries).run();
}

}  // namespace tilewright::fuzz
