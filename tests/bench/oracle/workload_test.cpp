#include "bench/oracle/workload.h"

#include <gtest/gtest.h>

#include "bench/oracle/arguments.h"

namespace tilewright::bench {
namespace {

const DTypes kF32{DType::F32, DType::F32, DType::F32};

Workload parsed(std::string_view key, const DTypes& dtypes = kF32, std::vector<SequenceLengths> lengths = {}) {
  auto workload = parse_workload(key, dtypes, std::move(lengths));
  EXPECT_TRUE(workload) << render(workload.error());
  return workload ? *workload : Workload{};
}

std::string message(std::string_view key) {
  const auto workload = parse_workload(key, kF32);
  return workload ? "accepted" : workload.error().message;
}

TEST(WorkloadKey, CanonicalKeysPrintBack) {
  for (const char* key :
       {"gemm:4096x4096x4096:nt", "gemm:b8x512x512x64:nn:bias-gelu", "gemm:1x2x3:tt:relu", "gemv:4096x4096:t",
        "gemm_w4:16x4096x4096:g128", "attn:b2hq32hkv8sq1024sk4096d128:bshd:causal-br",
        "attn:b1hq1hkv1sq1sk7d192dv128:bhsd", "attn:b1hq2hkv1sq8sk8d64:bshd:window-4",
        "attn:b1hq2hkv1sq8sk8d64:bshd:local-2-3", "attn:b1hq2hkv1sq8sk8d64:bshd:prefix-3", "softmax:4096x4096",
        "reduce:512x4096:absmax", "topk:64x32000:k13", "argreduce:3x4:min", "add:2x3x4x5", "gelu:7:tanh", "cast:0"}) {
    EXPECT_EQ(workload_key(parsed(key)), key);
  }
}

TEST(WorkloadKey, DefaultsBecomeCanonical) {
  EXPECT_EQ(workload_key(parsed("gemm:1x2x3")), "gemm:1x2x3:nn");
  EXPECT_EQ(workload_key(parsed("attn:b1hq2hkv1sq8sk8d64dv64:none")), "attn:b1hq2hkv1sq8sk8d64:bshd");
  EXPECT_EQ(workload_key(parsed("attn:b1hq2hkv1sq8sk8d64:causal-br")), "attn:b1hq2hkv1sq8sk8d64:bshd:causal-br");
}

TEST(WorkloadKey, EveryOperationHasAParsableDefaultKey) {
  for (const OperationInfo& row : all_operations()) {
    std::string dims;
    switch (row.form) {
      case DimsForm::Gemm: dims = "2x3x128"; break;
      case DimsForm::Gemv: dims = "3x4"; break;
      case DimsForm::Attention: dims = "b1hq2hkv1sq3sk4d8"; break;
      case DimsForm::Rows: dims = "5x9"; break;
      case DimsForm::Elements: dims = "11"; break;
      case DimsForm::Kernel: continue;  // needs its question: kernel_question_test
    }
    const Workload workload = parsed(std::string(row.name) + ":" + dims);
    EXPECT_EQ(parsed(workload_key(workload)), workload);
    const auto args = arguments(workload);
    EXPECT_TRUE(args.back().is_output()) << row.name;
    EXPECT_FALSE(args.front().is_output()) << row.name;
  }
}

TEST(WorkloadKey, LengthsAreADigestAndMustMatch) {
  const std::vector<SequenceLengths> lengths = {{3, 5}, {8, 8}};
  const Workload workload = parsed("attn:b2hq2hkv1sq8sk8d64:bshd:causal-br", kF32, lengths);
  const std::string key = workload_key(workload);
  EXPECT_EQ(key, "attn:b2hq2hkv1sq8sk8d64:bshd:causal-br:lens=" + lengths_digest(lengths));
  EXPECT_EQ(parsed(key, kF32, lengths), workload);
  EXPECT_NE(lengths_digest(lengths), lengths_digest({{3, 5}, {8, 7}}));
  EXPECT_EQ(message(key), "workload '" + key + "': it needs the lengths of this digest");
  EXPECT_FALSE(parse_workload("attn:b2hq2hkv1sq8sk8d64", kF32, {{3, 5}}));
  EXPECT_FALSE(parse_workload("attn:b1hq2hkv1sq8sk8d64", kF32, {{9, 5}}));
}

TEST(WorkloadKey, ErrorsNameTheSegment) {
  EXPECT_EQ(message("gem:1x2x3"), "workload 'gem:1x2x3': unknown operator 'gem'");
  EXPECT_EQ(message("gemm:1x2"), "workload 'gemm:1x2': bad dimensions");
  EXPECT_EQ(message("gemm"), "workload 'gemm': bad dimensions");
  EXPECT_EQ(message("gemm:1x2x-3"), "workload 'gemm:1x2x-3': bad dimensions");
  EXPECT_EQ(message("gemm:1x2x99999999999999999999"), "workload 'gemm:1x2x99999999999999999999': bad dimensions");
  EXPECT_EQ(message("gemm:1x2x3:nx"), "workload 'gemm:1x2x3:nx': unexpected 'nx'");
  EXPECT_EQ(message("gemm:1x2x3:nn:tanh"), "workload 'gemm:1x2x3:nn:tanh': unexpected 'tanh'");
  EXPECT_EQ(message("softmax:1x2:causal-br"), "workload 'softmax:1x2:causal-br': unexpected 'causal-br'");
  EXPECT_EQ(message("attn:b1hq3hkv2sq1sk1d8"), "workload 'attn:b1hq3hkv2sq1sk1d8:bshd': hq is not a multiple of hkv");
  EXPECT_EQ(message("attn:b1hq3hkv0sq1sk1d8"), "workload 'attn:b1hq3hkv0sq1sk1d8:bshd': hq is not a multiple of hkv");
  EXPECT_EQ(message("gemm_w4:1x2x100:g64"),
            "workload 'gemm_w4:1x2x100:g64': K = 100 is not a multiple of the group 64");
  EXPECT_EQ(message("topk:2x4:k5"), "workload 'topk:2x4:k5': k exceeds the row");
  EXPECT_EQ(message("topk:2x4:k0"), "workload 'topk:2x4:k0': unexpected 'k0'");
}

TEST(DTypeTriple, ParsesLongAndShort) {
  EXPECT_EQ(to_string(*parse_dtypes("f16")), "f16/f32/f16");
  EXPECT_EQ(to_string(*parse_dtypes("float32")), "f32/f32/f32");
  EXPECT_EQ(to_string(*parse_dtypes("i8")), "i8/i32/i32");
  EXPECT_EQ(to_string(*parse_dtypes("e4m3/f32/bf16")), "e4m3/f32/bf16");
  EXPECT_EQ(parse_dtypes("f16/f32").error().code, DiagnosticCode::E1604);
  EXPECT_EQ(parse_dtypes("half").error().code, DiagnosticCode::E1604);
}

TEST(Cost, CountsOnlyWhatTheMaskAllows) {
  EXPECT_EQ(minimal_cost(parsed("gemm:b2x3x4x5")).flops, 2.0 * 2 * 3 * 4 * 5);
  EXPECT_EQ(minimal_cost(parsed("gemm:3x4x5")).bytes, 4.0 * (15 + 20 + 12));
  const Workload causal = parsed("attn:b2hq4hkv2sq8sk8d16:bshd:causal-br");
  EXPECT_EQ(minimal_cost(causal).flops, 2.0 * 2 * 4 * 36 * (16 + 16));
  const Workload top_left = parsed("attn:b1hq1hkv1sq2sk8d16:bshd:causal-tl");
  EXPECT_EQ(minimal_cost(top_left).bytes, 4.0 * (2 * 16 + 2 * (16 + 16) + 2 * 16)) << "two keys are ever read";
}

}  // namespace
}  // namespace tilewright::bench
