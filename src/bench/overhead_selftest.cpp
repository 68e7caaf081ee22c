#include "bench/overhead_selftest.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "bench/stage_timing.h"

namespace tilewright::bench {
namespace {

/// Takes any contract and spins.
class Spinner final : public candidate::Candidate {
 public:
  explicit Spinner(double us) : ns_(static_cast<int64_t>(us * 1000)) {}
  Status open(const candidate::OpenOptions&) override { return {}; }
  candidate::Identity identity() const override { return {"spinner", "", {}}; }
  Result<candidate::Echo> prepare(const candidate::ContractText& contract) override {
    return candidate::Echo{contract.digest, {}};
  }
  Result<candidate::Compiled> compile(const std::string&) override { return candidate::Compiled{}; }
  Status launch(std::span<const candidate::Tensor>, void*, void*) override {
    const int64_t start = clock_.now_ns();
    while (clock_.now_ns() - start < ns_) {
    }
    return {};
  }

 private:
  int64_t ns_;
  measure::FastClock clock_;
};

}  // namespace

Result<OverheadSelftest> run_overhead_selftest() {
  OverheadSelftest out;
  candidate::Kinds kinds;
  kinds.add("spin", "spins", [&](const std::string&) -> Result<candidate::CandidatePtr> {
    return std::make_unique<Spinner>(out.kernel_us);
  });
  StageRequest request;
  request.candidate = "spin:";
  request.workload = "add:1024";
  request.dtypes = "f32";
  StageChannel channel(::open("/dev/null", O_WRONLY | O_CLOEXEC), "");
  auto ready = make_ready(request, request.candidate, kinds, channel);
  if (!ready) return std::unexpected(ready.error());
  LaunchTimer timer(*ready, channel, 1);
  if (auto awake = timer.warm_up(); !awake) return std::unexpected(awake.error());
  double batch_ms = 1e300;
  // Short and many: some run undisturbed on a busy machine.
  for (int i = 0; i < 400; ++i) {
    auto ms = timer.batch(50);
    if (!ms) return std::unexpected(ms.error());
    batch_ms = std::min(batch_ms, *ms);
  }
  measure::StopRule rule;
  rule.min_samples = 20'000;
  rule.min_total_ms = 200;
  const int64_t start = measure::kernel_ns();
  auto loop = timer.run(rule, false);
  const double wall_ms = static_cast<double>(measure::kernel_ns() - start) * 1e-6;
  if (!loop) return std::unexpected(loop.error());
  double sum_ms = 0;
  for (double ms : loop->samples_ms) sum_ms += ms;
  out.samples = static_cast<int64_t>(loop->samples_ms.size());
  out.sampled_us = 1000 * measure::median(measure::sorted(loop->samples_ms));
  out.batch_us = 1000 * batch_ms;
  out.own_percent = 100 * (out.sampled_us / out.batch_us - 1);
  out.wall_percent = 100 * (wall_ms - sum_ms) / static_cast<double>(out.samples) * 1000 / out.batch_us;
  return out;
}

}  // namespace tilewright::bench
