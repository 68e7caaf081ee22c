#include "adapters/rival/blas_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "bench/oracle/check.h"

namespace tilewright::adapters {
namespace {

using bench::CheckOptions;
using bench::PreparedKernel;
using bench::Workload;

bench::Prepare attention(int64_t rows_per_task) {
  return [rows_per_task](const Workload&, const candidate::ContractText& contract) -> Result<PreparedKernel> {
    const std::shared_ptr<candidate::Candidate> kernel =
        make_blas_attention({"blas-attention", rows_per_task, "", "python3"});
    if (auto ok = kernel->open({.threads = 2}); !ok) return std::unexpected(ok.error());
    auto echo = kernel->prepare(contract);
    if (!echo) return std::unexpected(echo.error());
    const std::shared_ptr<void> workspace(std::malloc(static_cast<size_t>(*kernel->workspace_bytes()) + 64), std::free);
    return PreparedKernel{*echo,
                          [kernel, workspace](std::span<const candidate::Tensor> args) {
                            return kernel->launch(args, workspace.get(), nullptr);
                          },
                          nullptr, workspace};
  };
}

TEST(BlasAttention, IsRightForBothLayoutsGroupedHeadsAndMasks) {
  if (auto ok = make_blas_attention({})->open({}); !ok) GTEST_SKIP() << render(ok.error());
  for (const char* key : {"attn:b2hq4hkv2sq37sk53d16:bshd", "attn:b1hq2hkv2sq33sk33d32:bhsd:causal-tl",
                          "attn:b1hq4hkv1sq40sk70d8:bshd:causal-br", "attn:b1hq2hkv2sq50sk20d16:bhsd:causal-br"}) {
    const Workload workload = *bench::parse_workload(key, *bench::parse_dtypes("f32"));
    for (const int64_t rows : {0, 16}) {
      CheckOptions options;
      options.mutants = false;
      options.fuzz = false;
      const auto report = bench::check_candidate(workload, attention(rows), options);
      EXPECT_TRUE(report.accepted()) << key << ": " << report.summary();
    }
  }
}

TEST(BlasAttention, RefusesWhatItDoesNotDo) {
  if (auto ok = make_blas_attention({})->open({}); !ok) GTEST_SKIP() << render(ok.error());
  const auto state = [&](const char* key, const char* dtypes) {
    return bench::check_shape(*bench::parse_workload(key, *bench::parse_dtypes(dtypes)), attention(0), {}).state;
  };
  EXPECT_EQ(state("attn:b1hq2hkv2sq8sk8d8:bshd:window-4", "f32"), bench::ShapeReport::State::Refused);
  EXPECT_EQ(state("attn:b1hq2hkv2sq8sk8d8:bshd", "bf16"), bench::ShapeReport::State::Refused);
  EXPECT_EQ(state("gemm:8x8x8", "f32"), bench::ShapeReport::State::Refused);
}

TEST(Exponentiate, IsAccurateOnEveryLaneAndSums) {
  std::vector<float> scores;
  for (int i = 0; i < 1000; ++i) scores.push_back(std::sin(static_cast<float>(i)) * 40);
  scores[7] = -INFINITY;
  const std::vector<float> before = scores;
  const float scale = 0.37F;
  float most = -INFINITY;
  for (float s : before) most = std::max(most, s);
  const float sum = exponentiate(scores.data(), 1000, scale);
  double expected_sum = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const double expected = std::exp2(static_cast<double>((before[i] - most) * scale));
    expected_sum += expected;
    if (expected > 1e-30)
      EXPECT_NEAR(scores[i] / expected, 1, 3e-7) << i;
    else
      EXPECT_LT(scores[i], 1e-30);
  }
  EXPECT_NEAR(sum / expected_sum, 1, 1e-5);
}

}  // namespace
}  // namespace tilewright::adapters
