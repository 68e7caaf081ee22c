#include "tune/search.h"

#include <algorithm>
#include <numeric>

#include "measure/random.h"

namespace tilewright::tune {

Search::Search(const Space& space, SearchOptions options)
    : space_(space), options_(options), taken_(space.points().size(), false) {
  const int64_t size = std::ssize(space.points());
  planned_ = options.runs > 0 ? std::min(options.runs, size) : size;
  std::vector<size_t> rest(static_cast<size_t>(size));
  std::iota(rest.begin(), rest.end(), size_t{0});
  const bool fits = planned_ == size;
  if (!fits || options.budget_s > 0) measure::Random(options.seed).shuffle(std::span(rest));
  if (options.incumbent) order_.push_back(*options.incumbent);
  if (const std::optional<size_t> initial = space.default_point()) order_.push_back(*initial);
  order_.insert(order_.end(), rest.begin(), rest.end());
}

bool Search::take(size_t point, std::vector<size_t>& batch) {
  if (taken_[point]) return false;
  taken_[point] = true;
  batch.push_back(point);
  return true;
}

void Search::exploit(std::vector<size_t>& batch, size_t limit) {
  for (const size_t center : best(3)) {
    for (const size_t point : space_.neighbours(center)) {
      if (batch.size() == limit) return;
      take(point, batch);
    }
  }
}

std::vector<size_t> Search::next(double spent_s) {
  std::vector<size_t> batch;
  if (handed_out_ >= planned_ || recorded_ < handed_out_) return batch;
  if (options_.budget_s > 0 && spent_s >= options_.budget_s && recorded_ > 0) {
    out_of_budget_ = true;
    return batch;
  }
  const size_t limit = std::min(options_.generation, static_cast<size_t>(planned_ - handed_out_));
  const bool is_exhaustive = planned_ == std::ssize(taken_);
  if (!is_exhaustive && 2 * handed_out_ >= planned_) exploit(batch, limit);
  while (batch.size() < limit && order_at_ < order_.size()) take(order_[order_at_++], batch);
  handed_out_ += std::ssize(batch);
  return batch;
}

void Search::record(size_t point, bool ok, double median_ms) {
  ++recorded_;
  if (ok) correct_.push_back({point, median_ms});
}

std::vector<size_t> Search::best(size_t count) const {
  std::vector<Outcome> ranked = correct_;
  std::sort(ranked.begin(), ranked.end(), [](const Outcome& a, const Outcome& b) {
    return a.median_ms != b.median_ms ? a.median_ms < b.median_ms : a.point < b.point;
  });
  std::vector<size_t> points;
  for (size_t i = 0; i < std::min(count, ranked.size()); ++i) points.push_back(ranked[i].point);
  return points;
}

}  // namespace tilewright::tune
