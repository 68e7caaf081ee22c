#include "base/closest.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

/// Levenshtein distance with transpositions of neighbours counted as one edit.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = std::exchange(row, std::exchange(next, before));
  }
  return row[b.size()];
}

}  // namespace

std::string closest(std::string_view name, std::span<const std::string> known) {
  if (name.size() > 64) return {};
  std::string best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > 64) continue;
    const size_t d = edit_distance(name, candidate);
    const bool shares_something = d < std::max(name.size(), candidate.size());
    if (d < best_distance && shares_something) best_distance = d, best = candidate;
  }
  return best;
}

}  // namespace tilewright
