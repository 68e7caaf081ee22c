#include "models/timed_operators.h"

#include <chrono>

namespace tilewright::models {

template <typename Call, typename Function>
void TimedOperators::timed(const Call& call, Function function) {
  OperatorTime& entry = times_[workload_of(call)];
  const auto start = std::chrono::steady_clock::now();
  function();
  entry.ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  ++entry.calls;
}

void TimedOperators::gemm(const GemmCall& c) {
  timed(c, [&] { base_.gemm(c); });
}
void TimedOperators::attention(const AttentionCall& c) {
  timed(c, [&] { base_.attention(c); });
}
void TimedOperators::norm(const NormCall& c) {
  timed(c, [&] { base_.norm(c); });
}
void TimedOperators::swiglu(const SwigluCall& c) {
  timed(c, [&] { base_.swiglu(c); });
}

}  // namespace tilewright::models
