// The question a kernel states itself: its tensors, its scalars and the expressions after `reference`, apart from its
// code. It is what the workload `kernel:NAME:M=64.N=32:ref=<8 hex digits>` means.
//
// Plain data, so that it travels to stage processes, into contracts and records: whoever takes these tensors in this
// order can be held to it, a `.tile` kernel or not. `ref=` is the digest of everything but the kernel's name. Does not:
// compute (reference_kernel.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/dtype.h"

namespace tilewright::bench {

struct QuestionTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<std::string> shape;  ///< over the dimensions: "M", "K // 2", "64"
  bool is_output = false;
  friend bool operator==(const QuestionTensor&, const QuestionTensor&) = default;
};

struct QuestionScalar {
  std::string name;
  DType dtype = DType::F32;
  double value = 0;
  friend bool operator==(const QuestionScalar&, const QuestionScalar&) = default;
};

struct KernelQuestion {
  std::string kernel;                   ///< its name
  std::vector<QuestionTensor> tensors;  ///< those that are passed, inputs first
  std::vector<QuestionScalar> scalars;
  std::vector<std::string> references;  ///< of every output, in words of docs/grammar.md

  bool is_stated() const { return !references.empty(); }
  friend bool operator==(const KernelQuestion&, const KernelQuestion&) = default;
};

nlohmann::json to_json(const KernelQuestion& question);
/// E1605 when it is not what to_json gives.
Result<KernelQuestion> parse_question(const nlohmann::json& json);
/// Eight hexadecimal digits.
std::string question_digest(const KernelQuestion& question);

/// Value of an extent as written in an argument's type: names, numbers, + - * // %, parentheses, ceildiv, min, max.
/// Nothing when a name is unknown or the form is another.
std::optional<int64_t> extent_value(std::string_view text, const std::map<std::string, int64_t>& dims);

}  // namespace tilewright::bench
