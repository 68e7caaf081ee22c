// The search over a tuning space: a pure state machine without clock or I/O.
//
//   while (auto batch = search.next(spent_s); !batch.empty()) for (size_t p : batch) search.record(p, try it);
//
// Order of trials: the incumbent and the default first; then, when the whole space fits the runs, every point in
// declared order; else half of the runs by a seeded shuffle and the rest beside the best points found so far (one step
// in one parameter), shuffle again when no neighbour is left. A generation is asked for only when the one before is
// recorded whole, so the same outcomes give the same order whatever the number of compile processes. Points already in
// a log are recorded without being tried: a resumed search continues as if it had never stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tune/space.h"
#include "tune/trial.h"

namespace tilewright::tune {

struct SearchOptions {
  int64_t runs = 0;  ///< trials at most; 0 = the whole space
  uint64_t seed = 1;
  double budget_s = 0;  ///< no new generation after this much spent; 0 = no limit
  size_t generation = 8;
  std::optional<size_t> incumbent;
};

class Search {
 public:
  Search(const Space& space, SearchOptions options);

  /// The next generation; empty when runs, space or budget are used up.
  std::vector<size_t> next(double spent_s);
  void record(size_t point, bool ok, double median_ms);

  int64_t planned() const { return planned_; }  ///< trials if the budget lasts
  int64_t recorded() const { return recorded_; }
  bool ran_out_of_budget() const { return out_of_budget_; }
  /// The best `count` correct points by median; equal medians in declared order.
  std::vector<size_t> best(size_t count) const;

 private:
  bool take(size_t point, std::vector<size_t>& batch);
  void exploit(std::vector<size_t>& batch, size_t limit);

  const Space& space_;
  SearchOptions options_;
  int64_t planned_ = 0;
  int64_t handed_out_ = 0;
  int64_t recorded_ = 0;
  bool out_of_budget_ = false;
  std::vector<size_t> order_;  ///< the fixed part of the order
  size_t order_at_ = 0;
  std::vector<bool> taken_;
  struct Outcome {
    size_t point;
    double median_ms;
  };
  std::vector<Outcome> correct_;
};

}  // namespace tilewright::tune
