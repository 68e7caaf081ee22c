#include "bench/oracle/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "bench/oracle/fuzz_shapes.h"
#include "bench/oracle/mutant_selftest.h"

namespace tilewright::bench {
namespace {

Workload parsed(std::string_view key, std::string_view dtypes = "f32") {
  auto workload = parse_workload(key, *parse_dtypes(dtypes));
  EXPECT_TRUE(workload) << render(workload.error());
  return *workload;
}

TEST(Selftest, TenMutantsRejectedAndSixteenControlsAccepted) {
  for (uint64_t seed : {1, 2}) {
    const MutantSelftest result = run_mutant_selftest({Distribution::Normal, seed});
    EXPECT_EQ(result.mutants.size(), 10u);
    EXPECT_EQ(result.controls.size(), 16u);
    for (const auto& line : result.mutants)
      EXPECT_TRUE(line.as_expected) << line.name << " on " << line.workload << ": " << line.detail << " seed " << seed;
    for (const auto& line : result.controls)
      EXPECT_TRUE(line.as_expected) << line.workload << ": " << line.detail << " seed " << seed;
  }
}

TEST(Check, CleanKernelsPassOnEveryOperatorItsFuzzShapesAndMutants) {
  for (const OperationInfo& row : all_operations()) {
    std::string dims;
    switch (row.form) {
      case DimsForm::Gemm: dims = "40x50x256"; break;
      case DimsForm::Gemv: dims = "40x50"; break;
      case DimsForm::Attention: dims = "b1hq2hkv1sq20sk50d32:bshd:causal-br"; break;
      case DimsForm::Rows: dims = "20x50"; break;
      case DimsForm::Elements: dims = "400"; break;
      case DimsForm::Kernel: continue;  // needs its question: kernel_question_test
    }
    const Workload workload = parsed(std::string(row.name) + ":" + dims, "f16");
    const CheckReport report = check_candidate(workload, tile_kernel_candidate({}), {});
    EXPECT_TRUE(report.accepted()) << report.summary();
    EXPECT_FALSE(report.oracle_blind()) << report.summary();
    EXPECT_GE(report.fuzz.size(), 25u) << row.name;
    EXPECT_GE(report.mutants.size(), 1u) << row.name;
    EXPECT_EQ(report.refused_shapes(), 0);
  }
}

TEST(Check, ZerosAndIntegersBlindTheOracleAndForbidMeasuring) {
  CheckOptions zeros;
  zeros.fuzz = false;
  zeros.contract.data.distribution = Distribution::Zeros;
  const CheckReport on_zeros = check_candidate(parsed("gemm:40x50x256", "f16"), tile_kernel_candidate({}), zeros);
  EXPECT_TRUE(on_zeros.accepted()) << on_zeros.summary();
  EXPECT_TRUE(on_zeros.oracle_blind());
  EXPECT_FALSE(on_zeros.may_measure);
  CheckOptions integers = zeros;
  integers.contract.data.distribution = Distribution::Integers;
  const auto mutants = try_mutants(parsed("gemm:40x50x16", "f16"), integers);
  EXPECT_FALSE(std::ranges::all_of(mutants, [](const MutantReport& m) {
    return m.mutant != Mutant::Fp16Accumulation || m.rejected;
  })) << "small integers sum exactly in f16 and hide it";
  EXPECT_FALSE(check_candidate(parsed("gemm:8x8x8"), tile_kernel_candidate({}), integers).may_measure);
}

TEST(Check, TopLeftCandidateAgainstBottomRightReferenceIsUnfairOrWrong) {
  const Workload workload = parsed("attn:b1hq2hkv1sq128sk512d64:bshd:causal-br", "f32");
  // It says what it does: unfair, with the field.
  const Prepare honest = [](const Workload& w, const candidate::ContractText& contract) -> Result<PreparedKernel> {
    auto kernel = tile_kernel_candidate({Mutant::TopLeftForBottomRight})(w, contract);
    kernel->echo = {"", {{"mask.spec", "causal-tl"}}};
    return kernel;
  };
  CheckOptions options;
  options.fuzz = options.mutants = false;
  const CheckReport unfair = check_candidate(workload, honest, options);
  EXPECT_EQ(unfair.unfair, "mask.spec");
  EXPECT_FALSE(unfair.accepted());
  EXPECT_EQ(unfair.main.findings[0].text,
            "unfair:mask.spec: the contract says causal-br, the candidate does causal-tl");
  // It lies about it: wrong.
  const CheckReport wrong = check_candidate(workload, tile_kernel_candidate({Mutant::TopLeftForBottomRight}), options);
  EXPECT_EQ(wrong.main.state, ShapeReport::State::Rejected);
  EXPECT_EQ(wrong.main.findings[0].rule, "relative");
}

/// A right kernel that then does something it must not.
Prepare naughty(std::function<void(std::span<const candidate::Tensor>)> afterwards) {
  return [afterwards](const Workload& w, const candidate::ContractText& contract) -> Result<PreparedKernel> {
    auto kernel = tile_kernel_candidate({})(w, contract);
    kernel->launch = [clean = kernel->launch, afterwards](std::span<const candidate::Tensor> tensors) -> Status {
      if (auto ok = clean(tensors); !ok) return ok;
      afterwards(tensors);
      return {};
    };
    return kernel;
  };
}

TEST(Check, CanariesInputsPoisonAndFailedLaunchesAreNoticed) {
  const Workload workload = parsed("gemm:8x8x8");
  CheckOptions options;
  options.fuzz = options.mutants = false;
  const auto rule = [&](const Prepare& prepare) {
    const ShapeReport report = check_shape(workload, prepare, options);
    return report.findings.empty() ? std::string("accepted") : report.findings[0].rule;
  };
  EXPECT_EQ(rule(naughty([](auto) {})), "accepted");
  EXPECT_EQ(rule(naughty([](auto t) { static_cast<float*>(t[2].data)[64] = 0; })), "canary");
  EXPECT_EQ(rule(naughty([](auto t) { static_cast<float*>(t[0].data)[-1] = 0; })), "canary");
  EXPECT_EQ(rule(naughty([](auto t) { static_cast<float*>(t[0].data)[3] += 1; })), "input");
  EXPECT_EQ(rule(naughty([](auto t) { static_cast<float*>(t[2].data)[3] = NAN; })), "pattern");
  EXPECT_EQ(rule(naughty([](auto t) { static_cast<float*>(t[2].data)[3] += 1e-3f; })), "relative");
  EXPECT_EQ(rule([](const Workload&, const candidate::ContractText& c) -> Result<PreparedKernel> {
              return PreparedKernel{{c.digest, {}},
                                    [](auto) -> Status { return fail(DiagnosticCode::E3202, "launch 1 failed"); },
                                    nullptr,
                                    nullptr};
            }),
            "launch");
  EXPECT_EQ(rule([](const Workload&, const candidate::ContractText&) -> Result<PreparedKernel> {
              return fail(DiagnosticCode::E3201, "only square matrices");
            }),
            "refused");
  EXPECT_EQ(rule([](const Workload&, const candidate::ContractText& c) -> Result<PreparedKernel> {
              return PreparedKernel{{c.digest, {}}, [](auto) -> Status { return {}; }, nullptr, nullptr};
            }),
            "unwritten");
}

TEST(Check, RunsThatDifferAreRecordedNotRejected) {
  int calls = 0;
  const Prepare flickering = naughty([&calls](auto t) {
    float& value = static_cast<float*>(t[2].data)[0];
    if (calls++ % 2) value = std::nextafter(value, 0.0f);
  });
  const ShapeReport report = check_shape(parsed("gemm:8x8x64"), flickering, {});
  EXPECT_EQ(report.state, ShapeReport::State::Accepted);
  EXPECT_FALSE(report.bitwise_repeatable);
}

TEST(Check, LargeProblemsAreSampledAndSaySo) {
  CheckOptions options;
  options.fuzz = options.mutants = false;
  options.reference.max_flops = 1e5;
  const ShapeReport report = check_shape(parsed("gemm:300x20x50"), tile_kernel_candidate({}), options);
  EXPECT_EQ(report.state, ShapeReport::State::Accepted);
  EXPECT_EQ(report.rows, 300);
  EXPECT_LT(report.checked_rows, 100);
  const ShapeReport unwritten =
      check_shape(parsed("gemm:300x20x50"), tile_kernel_candidate({Mutant::OneRowUnwritten}), options);
  EXPECT_EQ(unwritten.findings.at(0).rule, "unwritten") << "poison is looked for everywhere";
  const ShapeReport attention =
      check_shape(parsed("attn:b2hq2hkv1sq64sk64d16:bhsd:causal-br"), tile_kernel_candidate({}), options);
  EXPECT_EQ(attention.state, ShapeReport::State::Accepted);
  EXPECT_LT(attention.checked_rows, attention.rows);
}

TEST(FuzzShapes, AreDifferentReproducibleAndHoldTheHardOnes) {
  const Workload attention = parsed("attn:b2hq32hkv8sq1024sk4096d128:bshd:causal-br", "bf16");
  const auto shapes = fuzz_shapes(attention, 5);
  EXPECT_GE(shapes.size(), 25u);
  std::set<std::string> keys;
  bool sq_above_sk = false, single = false;
  for (const Workload& w : shapes) {
    keys.insert(workload_key(w));
    sq_above_sk = sq_above_sk || w.dim("SQ") > w.dim("SK");
    single = single || w.dim("SQ") == 1;
    EXPECT_EQ(w.dim("HQ") / w.dim("HKV"), 4);
  }
  EXPECT_EQ(keys.size(), shapes.size());
  EXPECT_TRUE(sq_above_sk) << "rows that see no key";
  EXPECT_TRUE(single);
  EXPECT_EQ(fuzz_shapes(attention, 5), shapes);
  EXPECT_NE(fuzz_shapes(attention, 6), shapes);
}

}  // namespace
}  // namespace tilewright::bench
