#include "adapters/rival/rivals.h"

#include <gtest/gtest.h>

#include <vector>

#include "bench/oracle/check.h"

namespace tilewright::adapters {
namespace {

using bench::CheckOptions;
using bench::PreparedKernel;
using bench::Workload;

/// Opens a fresh rival for each workload; E3201 passes through as "refused".
bench::Prepare rival(const std::string& name) {
  return [name](const Workload&, const candidate::ContractText& contract) -> Result<PreparedKernel> {
    auto made = make_rival(name, {});
    if (!made) return std::unexpected(made.error());
    const std::shared_ptr<candidate::Candidate> kernel = *std::move(made);
    if (auto ok = kernel->open({}); !ok) return std::unexpected(ok.error());
    if (auto ok = kernel->init_device(); !ok) return std::unexpected(ok.error());
    auto echo = kernel->prepare(contract);
    if (!echo) return std::unexpected(echo.error());
    auto compiled = kernel->compile("{}");
    if (!compiled) return std::unexpected(compiled.error());
    return PreparedKernel{
        *echo, [kernel](std::span<const candidate::Tensor> args) { return kernel->launch(args, nullptr, nullptr); },
        nullptr, kernel};
  };
}

class Rivals : public ::testing::TestWithParam<const char*> {};

TEST_P(Rivals, AreRightOnEveryLayoutEpilogueAndFuzzShape) {
  auto made = make_rival(GetParam(), {});
  ASSERT_TRUE(made);
  if (auto ok = (*made)->open({}); !ok) GTEST_SKIP() << render(ok.error());
  std::cout << "  " << (*made)->identity().name << " " << (*made)->identity().version << "\n";
  for (const char* key : {"gemm:64x48x32:nn", "gemm:64x48x32:nt:bias-relu", "gemm:30x20x50:tn:gelu",
                          "gemm:b3x17x19x23:tt:silu", "gemv:40x50:n", "gemv:40x50:t"}) {
    const Workload workload = *bench::parse_workload(key, *bench::parse_dtypes("f32"));
    CheckOptions options;
    options.mutants = false;
    options.fuzz = std::string_view(key).starts_with("gemm:64x48x32:nn");
    const auto report = bench::check_candidate(workload, rival(GetParam()), options);
    EXPECT_TRUE(report.accepted()) << key << ": " << report.summary();
    EXPECT_EQ(report.refused_shapes(), 0);
  }
}

TEST_P(Rivals, SayWhatTheyDoNotDo) {
  auto made = make_rival(GetParam(), {});
  if (auto ok = (*made)->open({}); !ok) GTEST_SKIP() << render(ok.error());
  CheckOptions options;
  const auto state = [&](const char* key, const char* dtypes) {
    return bench::check_shape(*bench::parse_workload(key, *bench::parse_dtypes(dtypes)), rival(GetParam()), options)
        .state;
  };
  EXPECT_EQ(state("softmax:4x4", "f32"), bench::ShapeReport::State::Refused);
  EXPECT_EQ(state("gemm:4x4x4", "e4m3/f32/f16"), bench::ShapeReport::State::Refused);
}

INSTANTIATE_TEST_SUITE_P(All, Rivals, ::testing::Values("openblas", "blis", "onednn"));

TEST(RivalSpelling, UnknownAndAbsentOnesAreNamed) {
  EXPECT_EQ(make_rival("mkl", {}).error().code, DiagnosticCode::E3200);
  auto absent = make_rival("openblas@/nowhere/libopenblas.so", {});
  ASSERT_TRUE(absent);
  const auto opened = (*absent)->open({});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, DiagnosticCode::E3204);
  EXPECT_EQ(opened.error().help, "pip install scipy-openblas32, or apt-get install libopenblas0-pthread");
}

TEST(OneDnn, Bf16IsRightWhereTheCpuHasIt) {
  auto made = make_rival("onednn", {});
  if (auto ok = (*made)->open({}); !ok) GTEST_SKIP() << render(ok.error());
  CheckOptions options;
  options.fuzz = options.mutants = false;
  const auto report = bench::check_shape(*bench::parse_workload("gemm:64x48x320:nt", *bench::parse_dtypes("bf16")),
                                         rival("onednn"), options);
  EXPECT_TRUE(report.state == bench::ShapeReport::State::Accepted || report.state == bench::ShapeReport::State::Refused)
      << (report.findings.empty() ? "" : report.findings[0].text);
}

}  // namespace
}  // namespace tilewright::adapters
