#include "bench/overhead_selftest.h"

#include <fcntl.h>
#include <unistd.h>

#include <tuple>

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

constexpr int kBlocks = 1000, kLaunches = 30;  // short blocks: most pass between two interruptions

/// One block: the batch and the sampled loop side by side.
struct Block {
  double batch_ms = 0, sample_ms = 0, wall_ms = 0;  ///< all per launch
  int64_t samples = 0;
};

Result<Block> run_block(LaunchTimer& timer) {
  Block out;
  const auto batch = timer.batch(kLaunches);
  if (!batch) return std::unexpected(batch.error());
  out.batch_ms = *batch;
  measure::StopRule rule;
  rule.min_samples = rule.max_samples = kLaunches;
  const int64_t start = measure::kernel_ns();
  auto loop = timer.run(rule, false);
  if (!loop) return std::unexpected(loop.error());
  out.samples = std::ssize(loop->samples_ms);
  out.wall_ms = static_cast<double>(measure::kernel_ns() - start) * 1e-6 / static_cast<double>(out.samples);
  out.sample_ms = measure::median(measure::sorted(loop->samples_ms));
  return out;
}

/// Median and interval of 100 · (ratio − 1).
std::pair<double, measure::Interval> percent(const std::vector<double>& ratios) {
  const std::vector<double> ordered = measure::sorted(ratios);
  auto interval = measure::median_interval(ordered, 0.95).value_or(measure::Interval{});
  interval.low = 100 * (interval.low - 1);
  interval.high = 100 * (interval.high - 1);
  return {100 * (measure::median(ordered) - 1), interval};
}

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
  std::vector<double> batch_us, sampled_us, own, wall;
  for (int i = 0; i < kBlocks; ++i) {
    const auto block = run_block(timer);
    if (!block) return std::unexpected(block.error());
    batch_us.push_back(1000 * block->batch_ms);
    sampled_us.push_back(1000 * block->sample_ms);
    own.push_back(block->sample_ms / block->batch_ms);
    wall.push_back(block->wall_ms / block->batch_ms);
    out.samples += block->samples;
  }
  out.blocks = kBlocks;
  out.batch_us = measure::median(measure::sorted(batch_us));
  out.sampled_us = measure::median(measure::sorted(sampled_us));
  std::tie(out.own_percent, out.own_interval) = percent(own);
  std::tie(out.wall_percent, out.wall_interval) = percent(wall);
  return out;
}

}  // namespace tilewright::bench
