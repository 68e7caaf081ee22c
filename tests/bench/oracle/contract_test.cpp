#include "bench/oracle/contract.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>

#include "base/narrow_float.h"

namespace tilewright::bench {
namespace {

Workload parsed(std::string_view key, std::string_view dtypes = "f16") {
  auto workload = parse_workload(key, *parse_dtypes(dtypes));
  EXPECT_TRUE(workload) << render(workload.error());
  return *workload;
}

TEST(Contract, IsCanonicalAndNamesTheWorkloadBack) {
  const Workload gemm = parsed("gemm:2x3x4:nt:bias");
  const auto text = contract_text(gemm, {});
  EXPECT_EQ(text.json, R"({"args":[{"dtype":"f16","name":"A","role":"in","shape":[2,4],"strides":[4,1]},)"
                       R"({"dtype":"f16","name":"B","role":"in","shape":[3,4],"strides":[4,1]},)"
                       R"({"dtype":"f16","name":"bias","role":"in","shape":[3],"strides":[1]},)"
                       R"({"dtype":"f16","name":"C","role":"out","shape":[2,3],"strides":[3,1]}],)"
                       R"("data":{"distribution":"normal","seed":1},"device":"cpu","dims":{"K":4,"M":2,"N":3},)"
                       R"("dtypes":{"acc":"f32","in":"f16","out":"f16"},"epilogue":"bias","key":"gemm:2x3x4:nt:bias",)"
                       R"("math":"ieee","op":"gemm","variant":"nt","version":1})");
  EXPECT_EQ(text.digest.size(), 64u);
  for (const char* key : {"attn:b2hq4hkv2sq8sk16d64:bshd:causal-br", "rmsnorm:4x8", "topk:4x8:k8"}) {
    const Workload workload = parsed(key);
    EXPECT_EQ(*workload_of(contract_json(workload, {})), workload);
  }
  Workload ragged = parsed("attn:b2hq4hkv2sq8sk16d64");
  ragged.lengths = {{8, 16}, {1, 2}};
  EXPECT_EQ(*workload_of(contract_json(ragged, {})), ragged);
}

TEST(Contract, EveryFieldThatDiffersIsNamed) {
  const auto base = contract_json(parsed("attn:b1hq2hkv1sq128sk512d64:bshd:causal-br"), {});
  const auto fields = [&](const Workload& w, const ContractOptions& o) {
    return differing_fields(base, contract_json(w, o));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(fields(parsed("attn:b1hq2hkv1sq128sk512d64:bshd:causal-br"), {}), Names{});
  EXPECT_EQ(fields(parsed("attn:b1hq2hkv1sq128sk512d64:bshd:causal-tl"), {}),
            (Names{"key", "mask.digest", "mask.spec", "mask.valid_pairs"}));
  ContractOptions tf32;
  tf32.math = "tf32";
  EXPECT_EQ(fields(parsed("attn:b1hq2hkv1sq128sk512d64:bshd:causal-br"), tf32), Names{"math"});
  ContractOptions seed;
  seed.data.seed = 2;
  EXPECT_EQ(fields(parsed("attn:b1hq2hkv1sq128sk512d64:bshd:causal-br"), seed), Names{"data.seed"});
}

TEST(Contract, AnUnequalEchoIsUnfairWithTheFieldNamed) {
  const auto contract = contract_text(parsed("attn:b1hq2hkv1sq128sk512d64:bshd:causal-br"), {});
  EXPECT_TRUE(check_fair(contract, {contract.digest, {}}, "mine"));
  const auto refused = check_fair(contract, {"", {{"mask.spec", "causal-tl"}}}, "mine");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, DiagnosticCode::E1606);
  EXPECT_EQ(refused.error().message, "unfair:mask.spec: the contract says causal-br, mine does causal-tl");
  EXPECT_EQ(*unfair_field(contract, {"0123", {}}), "digest");
}

TEST(Data, IsAFunctionOfSeedNameAndIndex) {
  const Argument a{"A", DType::F32, {100, 100}}, b{"B", DType::F32, {100, 100}}, half{"A", DType::F32, {50, 100}};
  const HostTensor first = make_tensor(a, {}), again = make_tensor(a, {}), prefix = make_tensor(half, {});
  EXPECT_EQ(first.data, again.data);
  EXPECT_TRUE(std::equal(prefix.data.begin(), prefix.data.end(), first.data.begin()));
  EXPECT_NE(first.data, make_tensor(b, {}).data);
  EXPECT_NE(first.data, make_tensor(a, {Distribution::Normal, 2}).data);
}

TEST(Data, NormalHasTheMomentsOfANormal) {
  const HostTensor x = make_tensor({"A", DType::F32, {1'000'000}}, {});
  double sum = 0, squares = 0, fourths = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double v = x.as<float>()[i];
    sum += v, squares += v * v, fourths += v * v * v * v;
  }
  const double n = static_cast<double>(x.numel());
  EXPECT_NEAR(sum / n, 0, 0.004);
  EXPECT_NEAR(squares / n, 1, 0.006);
  EXPECT_NEAR(fourths / n, 3, 0.05);
}

TEST(Data, ZerosIntegersAndSpecialsAreNeverMeasured) {
  for (const auto distribution : {Distribution::Normal, Distribution::Uniform, Distribution::Large,
                                  Distribution::Specials, Distribution::Integers, Distribution::Zeros}) {
    EXPECT_EQ(parse_distribution(name(distribution)), distribution);
    const bool real = distribution == Distribution::Normal || distribution == Distribution::Uniform ||
                      distribution == Distribution::Large;
    EXPECT_EQ(supports_measurement({distribution, 1}, DType::F16), real) << name(distribution);
  }
  EXPECT_TRUE(supports_measurement({Distribution::Integers, 1}, DType::I8));
  const HostTensor special = make_tensor({"A", DType::F16, {4096}}, {Distribution::Specials, 3});
  int nans = 0, infinities = 0;
  for (int64_t i = 0; i < special.numel(); ++i) {
    const float v = f16_to_float(special.as<uint16_t>()[i]);
    nans += std::isnan(v), infinities += std::isinf(v);
  }
  EXPECT_GT(nans, 0);
  EXPECT_GT(infinities, 0);
}

TEST(Contract, WhatIsNoneIsRefused) {
  const auto workload = workload_of(nlohmann::json::parse("[1]"));
  ASSERT_FALSE(workload);
  EXPECT_EQ(render(workload.error()), "error[E1605]: the contract is not an object with key and dtypes\n");
}

}  // namespace
}  // namespace tilewright::bench
