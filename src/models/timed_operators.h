// Operators with a stopwatch: time and calls per workload key, for the profile of a model. Adds two clock readings to a
// call.
#pragma once

#include <map>
#include <string>

#include "models/operators.h"

namespace tilewright::models {

struct OperatorTime {
  int64_t calls = 0;
  double ms = 0;
};

class TimedOperators : public Operators {
 public:
  explicit TimedOperators(Operators& base) : base_(base) {}

  void gemm(const GemmCall& call) override;
  void attention(const AttentionCall& call) override;
  void norm(const NormCall& call) override;
  void swiglu(const SwigluCall& call) override;
  Status status() const override { return base_.status(); }

  const std::map<std::string, OperatorTime>& times() const { return times_; }
  void clear() { times_.clear(); }

 private:
  template <typename Call, typename Function>
  void timed(const Call& call, Function function);

  Operators& base_;
  std::map<std::string, OperatorTime> times_;
};

}  // namespace tilewright::models
