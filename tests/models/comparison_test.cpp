#include "models/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "adapters/rival/rivals.h"
#include "models/library_operators.h"
#include "models/model_cell.h"

namespace tilewright::models {
namespace {

SwapOptions rival_gemm() {
  return {"gemm", [] { return adapters::make_rival("openblas", {}); }, {}, true};
}

struct Setup {
  std::unique_ptr<LibraryOperators> library;
  std::unique_ptr<Decoder> decoder;
  RunShape shape;
};
std::optional<Setup> tiny() {
  auto library = open_library_operators(1);
  if (!library) return std::nullopt;
  const DecoderConfig config = *decoder_size("tiny");
  auto decoder = Decoder::make(config, std::make_shared<Weights>(random_decoder_weights(config, 1)));
  return Setup{*std::move(library), std::make_unique<Decoder>(*std::move(decoder)), {random_prompt(config, 4, 1), 4}};
}

TEST(Profile, SharesAddUpAndTheLargestGainIsAmdahls) {
  auto setup = tiny();
  if (!setup) GTEST_SKIP() << "no BLAS library: pip install scipy-openblas32";
  const auto p = profile(*setup->decoder, setup->shape, *setup->library);
  ASSERT_TRUE(p) << render(p.error());
  double shares = p->other_share;
  for (const ProfileRow& row : p->rows) {
    shares += row.share;
    EXPECT_NEAR(row.largest_gain, 1 / (1 - row.share), 1e-9);
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_GE(p->other_share, 0);
  EXPECT_EQ(by_operator(*p).size(), 4u) << "gemm, attn, rmsnorm, swiglu";
}

TEST(CompareModels, TheSameLibraryTwiceIsCheckedProfiledAndTimed) {
  auto setup = tiny();
  if (!setup) GTEST_SKIP() << "no BLAS library";
  const auto c = compare_models(*setup->decoder, *setup->library, rival_gemm(), {setup->shape, 8, 3, {}});
  ASSERT_TRUE(c) << render(c.error());
  EXPECT_TRUE(c->same_tokens);
  EXPECT_FALSE(c->taken.empty());
  EXPECT_EQ(c->phases.size(), 3u);
  EXPECT_EQ(c->whole_ms.size(), 8u);
  EXPECT_GT(c->operator_share, 0);
  EXPECT_LT(c->operator_share, 1);
  EXPECT_NEAR(c->predicted_speedup, 1 / ((1 - c->operator_share) + c->operator_share / c->operator_speedup), 1e-9);
  EXPECT_FALSE(c->phases[0].p99_library) << "8 samples cannot support a 99th percentile";
  const auto json = to_json(*c);
  EXPECT_EQ(json["phases"][0]["p99_library_ms"], "percentile-unsupported");
}

TEST(CompareModels, ACandidateThatTakesNothingIsRefused) {
  auto setup = tiny();
  if (!setup) GTEST_SKIP() << "no BLAS library";
  SwapOptions attention = rival_gemm();
  attention.operation = "attn";
  const auto c = compare_models(*setup->decoder, *setup->library, attention, {setup->shape, 8, 3, {}});
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, DiagnosticCode::E3201);
}

TEST(CompareCommand, ASlowerOperatorInAUsersProgramIsFound) {
  const auto c =
      compare_command("echo ready; while read w; do [ $w = b ] && sleep 0.03; sleep 0.01; echo done; done", 8, 1);
  ASSERT_TRUE(c) << render(c.error());
  EXPECT_EQ(c->whole_ms.size(), 8u);
  EXPECT_GT(c->whole.paired.ratio, 2) << "40 ms and more against 10 ms and more";
}

TEST(CompareCommand, ProgramsThatDoNotSpeakTheProtocolAreNamed) {
  EXPECT_EQ(compare_command("echo hello", 6, 1).error().code, DiagnosticCode::E3205);
  EXPECT_EQ(compare_command("echo ready; exit 3", 6, 1).error().code, DiagnosticCode::E3202);
}

TEST(ModelCell, IsMeasuredOnlyWhereTheModelCallsTheOperatorAtThisShape) {
  if (!tiny()) GTEST_SKIP() << "no BLAS library";
  ModelCellRequest request;
  request.key = {{"gemm:16x176x64:nt", "f32/f32/f32", "cpu:test:1c"}, "openblas", bench::Stage::Model};
  request.model = "tiny";
  request.rounds = 6;
  request.make = rival_gemm().make;
  const bench::Cell measured = measure_model_cell(request);
  ASSERT_EQ(measured.state, bench::State::Measured) << measured.reason;
  EXPECT_GT(*measured.value, 0);
  EXPECT_EQ(measured.detail["calls_per_run"], 4) << "gate and up of two layers in the prefill";
  for (const auto& [shape, dtype] : {std::pair{"gemm:17x176x64:nn", "f32/f32/f32"},
                                     {"gemm:16x176x65:nt", "f32/f32/f32"},
                                     {"gemm:16x176x64:nt", "f16/f32/f16"}}) {
    request.key.subject.shape = shape;
    request.key.subject.dtype = dtype;
    const bench::Cell cell = measure_model_cell(request);
    EXPECT_EQ(cell.state, bench::State::NotRun);
    EXPECT_EQ(cell.reason, "operator not in tiny") << shape;
    EXPECT_FALSE(cell.value);
  }
}

}  // namespace
}  // namespace tilewright::models
