// A kernel's own reference as the benchmark's question: its key and contract, what judges it, and mistakes it must
// notice.
#include "bench/oracle/kernel_question.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/narrow_float.h"
#include "bench/oracle/arguments.h"
#include "bench/oracle/check.h"
#include "bench/oracle/expression_shape.h"
#include "bench/oracle/fuzz_shapes.h"
#include "bench/oracle/reference_kernel.h"
#include "kernels/reference.h"

namespace tilewright::bench {
namespace {

KernelQuestion swiglu(std::string reference = "mul(silu(add(matmul(X, Wg), bg)), matmul(X, Wu))",
                      DType dtype = DType::F32) {
  return {"swiglu",
          {{"X", dtype, {"M", "K"}, false},
           {"Wg", dtype, {"K", "N"}, false},
           {"Wu", dtype, {"K", "N"}, false},
           {"bg", dtype, {"N"}, false},
           {"Y", dtype, {"M", "N"}, true}},
          {{"limit", DType::F32, 4}},
          {std::move(reference)}};
}

Workload asked(KernelQuestion question, std::vector<std::pair<std::string, int64_t>> dims, DTypes dtypes = {}) {
  Workload w;
  w.operation = Operation::Kernel;
  w.dims = std::move(dims);
  w.question = std::move(question);
  w.dtypes = dtypes;
  return w;
}
const std::vector<std::pair<std::string, int64_t>> kDims = {{"M", 40}, {"N", 72}, {"K", 56}};

/// A kernel that computes another expression in float32: right where it is the question's own.
Prepare computing(const std::string& reference) {
  return [reference](const Workload& workload, const candidate::ContractText& contract) -> Result<PreparedKernel> {
    PreparedKernel out;
    out.echo.digest = contract.digest;
    out.launch = [reference, workload](std::span<const candidate::Tensor> tensors) -> Status {
      Workload other = workload;
      other.question.references = {reference};
      std::vector<HostTensor> inputs;
      for (const candidate::Tensor& t : tensors) {
        if (t.is_output) continue;
        inputs.push_back(zeros(t.dtype, t.shape));
        std::memcpy(inputs.back().data.data(), t.data, inputs.back().data.size());
      }
      const auto outputs = evaluate_question_declared(other, inputs, {});
      if (outputs.empty()) return fail(DiagnosticCode::E3206, "cannot be computed");
      store_doubles(tensors.back().dtype, outputs[0].values.data(), static_cast<std::byte*>(tensors.back().data),
                    outputs[0].values.size());
      return {};
    };
    return out;
  };
}

TEST(KernelQuestion, KeyAndContractComeBackWithTheQuestion) {
  const Workload w = asked(swiglu(), kDims);
  const std::string key = workload_key(w);
  EXPECT_EQ(key, "kernel:swiglu:M=40.N=72.K=56:ref=" + question_digest(w.question));
  EXPECT_EQ(key.find_first_of(", \""), std::string::npos);
  const auto back = parse_workload(key, w.dtypes, {}, w.question);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, w);
  const auto contracted = workload_of(contract_json(w, {}));
  ASSERT_TRUE(contracted) << contracted.error().message;
  EXPECT_EQ(*contracted, w);
  const auto without = parse_workload(key, w.dtypes);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().message, "workload '" + key + "': the digits after ref= do not say what is computed");
  EXPECT_FALSE(parse_workload(key, w.dtypes, {}, swiglu("matmul(X, Wg)"))) << "another question, the same name";
  EXPECT_FALSE(parse_question(nlohmann::json{{"name", "x"}}));
}

TEST(KernelQuestion, DigestIsOfEverythingButTheName) {
  const KernelQuestion one = swiglu();
  KernelQuestion other = one;
  other.kernel = "renamed";
  EXPECT_EQ(question_digest(other), question_digest(one));
  other.scalars[0].value = 5;
  EXPECT_NE(question_digest(other), question_digest(one));
  EXPECT_NE(question_digest(swiglu("matmul(X, Wg)")), question_digest(one));
  EXPECT_NE(question_digest(swiglu(one.references[0], DType::F16)), question_digest(one));
}

TEST(KernelQuestion, ExtentsAreArithmeticOverDimensions) {
  const std::map<std::string, int64_t> dims = {{"M", 10}, {"K", 7}};
  const std::pair<const char*, std::optional<int64_t>> cases[] = {{"M", 10},
                                                                  {"64", 64},
                                                                  {"K // 2", 3},
                                                                  {"M + 2 * K - 1", 23},
                                                                  {"(M + 1) % K", 4},
                                                                  {"ceildiv(M, 4)", 3},
                                                                  {"min(M, K)", 7},
                                                                  {"Q", std::nullopt},
                                                                  {"M //", std::nullopt},
                                                                  {"M // 0", std::nullopt},
                                                                  {"", std::nullopt}};
  for (const auto& [text, value] : cases) EXPECT_EQ(extent_value(text, dims), value) << text;
}

TEST(KernelQuestion, WhatCannotBeAskedIsRefused) {
  Workload w = asked(swiglu(), {{"M", 40}, {"N", 72}});
  EXPECT_EQ(validate(w).error().message.substr(workload_key(w).size() + 13), "the shape of X is not known: [M, K]");
  w = asked(swiglu(), kDims);
  w.question.references.push_back("X");
  EXPECT_FALSE(validate(w));
}

TEST(KernelQuestion, TheExpressionItselfPassesOnItsFuzzShapesInEveryType) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    const std::string text = swiglu().references[0];
    const Workload w = asked(swiglu(text, dtype), kDims, {dtype, DType::F32, dtype});
    const CheckReport report = check_candidate(w, computing(text), {});
    EXPECT_TRUE(report.accepted()) << report.summary();
    EXPECT_GE(report.fuzz.size(), 25u);
    EXPECT_TRUE(report.main.judgements.at(0).absolute_applies);
    EXPECT_FALSE(report.main.judgements.at(0).absolute_is_vacuous);
  }
}

TEST(KernelQuestion, PlantedMistakesAreNoticed) {
  const Workload w = asked(swiglu(), kDims);
  for (const char* wrong : {"mul(silu(add(matmul(X, Wg), bg)), matmul(X, Wg))",              // the other weight
                            "mul(silu(matmul(X, Wg)), matmul(X, Wu))",                       // no bias
                            "mul(gelu(add(matmul(X, Wg), bg)), matmul(X, Wu))",              // another function
                            "mul(silu(mul(add(matmul(X, Wg), bg), 1.001)), matmul(X, Wu))",  // a wrong constant
                            "mul(mul(silu(add(matmul(X, Wg), bg)), matmul(X, Wu)), 0.9999)",
                            "cast(mul(silu(add(matmul(X, Wg), bg)), matmul(X, Wu)), bf16)"}) {
    const CheckReport report = check_candidate(w, computing(wrong), {});
    EXPECT_EQ(report.main.state, ShapeReport::State::Rejected) << wrong << ": " << report.summary();
    EXPECT_TRUE(report.fuzz.empty()) << "nothing more is asked of a wrong kernel";
  }
}

TEST(KernelQuestion, AWrongAxisIsNoticed) {
  const KernelQuestion rows{"centre",
                            {{"X", DType::F32, {"R", "C"}, false}, {"Y", DType::F32, {"R", "C"}, true}},
                            {},
                            {"sub(X, row_mean(X, keep = true))"}};
  const Workload w = asked(rows, {{"R", 33}, {"C", 65}});
  EXPECT_TRUE(check_candidate(w, computing(rows.references[0]), {}).accepted());
  const CheckReport report = check_candidate(w, computing("sub(X, div(column_sum(X), R))"), {});
  EXPECT_EQ(report.main.state, ShapeReport::State::Rejected) << report.summary();
}

TEST(KernelQuestion, ShapesTheExpressionDoesNotAllowAreNotAsked) {
  const KernelQuestion halves{"halves",
                              {{"X", DType::F32, {"R", "D"}, false}, {"Y", DType::F32, {"R", "D // 2"}, true}},
                              {},
                              {"add(slice(X, 0, floordiv(D, 2)), slice(X, floordiv(D, 2), D))"}};
  const std::vector<Workload> shapes = fuzz_shapes(asked(halves, {{"R", 33}, {"D", 64}}), 1);
  EXPECT_GE(shapes.size(), 25u);
  for (const Workload& shape : shapes) EXPECT_EQ(shape.dim("D") % 2, 0) << workload_key(shape);
}

TEST(KernelQuestion, LargeQuestionsAreSampledByRowsWhereRowsAreIndependent) {
  const Workload w = asked(swiglu(), {{"M", 300}, {"N", 64}, {"K", 64}});
  ReferenceOptions few;
  few.max_flops = 1e6;
  const auto inputs = make_inputs(w, {});
  const Expected whole = evaluate_question(w, inputs, {}), sampled = evaluate_question(w, inputs, few);
  ASSERT_TRUE(whole.failure.empty() && sampled.failure.empty()) << sampled.failure;
  const ExpectedOutput& out = sampled.outputs[0];
  ASSERT_FALSE(out.rows.empty());
  EXPECT_LT(out.rows.size(), 300u);
  for (size_t r = 0; r < out.rows.size(); ++r) {
    for (size_t j = 0; j < 64; ++j)
      EXPECT_DOUBLE_EQ(out.values[r * 64 + j], whole.outputs[0].values[static_cast<size_t>(out.rows[r]) * 64 + j]);
  }
  const auto cost = [](const char* text, const char* sampled_dim) {
    return expression_cost(*kernels::parse_reference(text),
                           {{"X", {{300, 64}, true}}, {"W", {{64, 64}, false}}, {"v", {{300}, true}}}, {{"M", 300}},
                           sampled_dim);
  };
  EXPECT_TRUE(cost("relu(matmul(X, W))", "M").keeps_rows);
  EXPECT_TRUE(cost("sub(X, row_max(X, keep = true))", "M").keeps_rows);
  EXPECT_EQ(cost("matmul(X, W)", "M").flops, 2.0 * 300 * 64 * 64);
  for (const char* mixing : {"column_sum(X)", "matmul(X, X, transpose_a = true)", "transpose(X)", "softmax(v)",
                             "matmul(matmul(X, W), X, transpose_b = true)", "mul(X, M)"})
    EXPECT_FALSE(cost(mixing, "M").keeps_rows) << mixing;
}

TEST(KernelQuestion, AReferenceOfAnotherShapeIsSaidAndNothingIsAccepted) {
  const Workload w = asked(swiglu("matmul(X, Wg, transpose_a = true)"), kDims);
  const CheckReport report = check_candidate(w, computing("matmul(X, Wg)"), {});
  EXPECT_FALSE(report.accepted());
  EXPECT_NE(report.summary().find("one inner extent is needed"), std::string::npos) << report.summary();
}

}  // namespace
}  // namespace tilewright::bench
