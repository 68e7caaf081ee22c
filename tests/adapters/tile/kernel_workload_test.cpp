// What a kernel asks: an operator that libraries know, or its own expression.
#include "adapters/tile/kernel_workload.h"

#include <gtest/gtest.h>

#include "bench/oracle/arguments.h"
#include "lang/program_digest.h"
#include "lang/source.h"

namespace tilewright::adapters {
namespace {

/// The workload of a kernel with this header and an empty body.
Result<bench::Workload> asked(const std::string& header, const std::map<std::string, int64_t>& dims) {
  const auto source = lang::parse_source("kernel k" + header + "\n{\n}\n", "k.tile");
  if (!source) return std::unexpected(source.error());
  const auto info = lang::describe(*source, "k", {});
  if (!info) return std::unexpected(info.error());
  return workload_of_kernel(*info, dims);
}

const std::map<std::string, int64_t> kDims = {{"M", 4}, {"N", 6}, {"K", 8}};

TEST(KernelWorkload, AnOperatorThatLibrariesKnowStaysThatOperator) {
  const auto w = asked("(A: f32[M, K], B: f32[K, N]) -> (C: f32[M, N])\n  reference matmul(A, B)", kDims);
  ASSERT_TRUE(w) << w.error().message;
  EXPECT_EQ(bench::workload_key(*w), "gemm:4x6x8:nn");
}

TEST(KernelWorkload, AnyOtherExpressionIsTheKernelsOwnQuestion) {
  const auto w = asked(
      "(X: T[M, K], W: T[K, N], optional res: T[M, N], gain: f32 = 1.0 / 4) -> (Y: T[M, N])\n  param T: dtype = f16\n"
      "  reference silu(matmul(X, W)) * gain",
      kDims);
  ASSERT_TRUE(w) << w.error().message;
  EXPECT_EQ(w->operation, bench::Operation::Kernel);
  EXPECT_EQ(w->question.references, (std::vector<std::string>{"mul(silu(matmul(X, W)), gain)"}));
  ASSERT_EQ(w->question.tensors.size(), 3u) << "an optional tensor that nobody passes is no argument";
  ASSERT_EQ(w->question.scalars.size(), 1u);
  EXPECT_EQ(w->question.scalars[0].value, 0.25);
  EXPECT_EQ(bench::to_string(w->dtypes), "f16/f32/f16");
  EXPECT_EQ(bench::arguments(*w)[2].shape, (std::vector<int64_t>{4, 6}));
}

TEST(KernelWorkload, AKnownWordOverOtherShapesIsNotTheOperator) {
  const auto w = asked("(A: f32[M, N], b: f32[N]) -> (C: f32[M, N])\n  reference add(A, b)", {{"M", 4}, {"N", 6}});
  ASSERT_TRUE(w) << w.error().message;
  EXPECT_EQ(w->operation, bench::Operation::Kernel) << "add:4x6 adds two matrices";
}

TEST(KernelWorkload, ParametersInShapesAreReplaced) {
  const auto w =
      asked("(X: f32[M, N]) -> (Y: f32[M, N // width])\n  param width = 2\n  reference slice(X, 0, N // width)",
            {{"M", 4}, {"N", 6}});
  ASSERT_TRUE(w) << w.error().message;
  EXPECT_EQ(w->question.tensors[1].shape[1], "N // 2");
  EXPECT_EQ(bench::arguments(*w)[1].shape, (std::vector<int64_t>{4, 3}));
}

TEST(KernelWorkload, WhatCannotBeAskedSaysWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"(X: f32[M, N]) -> (Y: f32[M, N])", "(none): the kernel has no `reference` line"},
      {"(inout X: f32[M, N]) -> (Y: f32[M, N])\n  reference X * 2", "it changes X in place"},
      {"(X: f32[M, N]) -> (Y: f32[M, N], Z: f32[M])\n  reference X * 2", "2 outputs and 1 references"},
      {"(X: f32[M, Q]) -> (Y: f32[M, Q])\n  reference X * 2", "dimension Q is open: give --dim Q=N"}};
  for (const auto& [header, why] : cases) {
    const auto w = asked(header, kDims);
    ASSERT_FALSE(w) << header;
    EXPECT_EQ(w.error().code, DiagnosticCode::E1810);
    EXPECT_NE(w.error().message.find(why), std::string::npos) << w.error().message;
  }
  const auto word = asked("(X: f32[M, N]) -> (Y: f32[M, N])\n  reference smooth(X)", {{"M", 4}, {"N", 6}});
  ASSERT_FALSE(word);
  EXPECT_EQ(word.error().message, "`smooth` is not a word of references");
}

TEST(ProgramDigest, IsOfTheTokensAlone) {
  const std::string text = "kernel k(A: f32[M]) -> (B: f32[M])\n{\n  grid (b: M) { B[b] = A[b] }\n}\n";
  EXPECT_EQ(lang::program_digest(text + "# a comment\n\n"), lang::program_digest(text));
  EXPECT_EQ(lang::program_digest("# before\n" + text), lang::program_digest(text));
  EXPECT_NE(lang::program_digest("kernel j" + text.substr(8)), lang::program_digest(text));
  EXPECT_NE(lang::program_digest("\"open"), lang::program_digest("\"opem")) << "no tokens: the bytes";
}

}  // namespace
}  // namespace tilewright::adapters
