#include "bench/oracle/reference_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "base/narrow_float.h"
#include "bench/oracle/arguments.h"
#include "bench/oracle/expression_shape.h"
#include "kernels/reference.h"

namespace tilewright::bench {
namespace {

/// A product with its bound takes about four plain ones, and everything is evaluated several times in a bench.
constexpr double kShareOfBudget = 1.0 / 12;

using Dims = std::map<std::string, int64_t>;

Dims dims_of(const Workload& w) { return {w.dims.begin(), w.dims.end()}; }

/// The dimension that every output begins with, where it is a plain name and no tensor has it elsewhere.
std::string leading_dim(const KernelQuestion& question, const Dims& dims) {
  std::string lead;
  for (const QuestionTensor& t : question.tensors) {
    if (!t.is_output) continue;
    if (t.shape.empty() || (!lead.empty() && t.shape[0] != lead)) return "";
    lead = t.shape[0];
  }
  if (!dims.contains(lead)) return "";
  for (const QuestionTensor& t : question.tensors) {
    for (size_t d = 0; d < t.shape.size(); ++d) {
      const bool is_elsewhere = (d > 0 || t.shape[d] != lead) && t.shape[d].find(lead) != std::string::npos;
      if (is_elsewhere) return "";
    }
  }
  return lead;
}

bool is_sampled(const QuestionTensor& t, const std::string& lead) {
  return !lead.empty() && !t.shape.empty() && t.shape[0] == lead;
}

/// The expressions of a question, parsed, with what they cost.
struct Expressions {
  std::vector<lang::Reference> references;
  std::string lead;  ///< the dimension whose rows may be sampled; empty: none
  double flops = 0, work = 0;
  std::string failure;
};

Expressions expressions_of(const Workload& w) {
  Expressions out;
  out.lead = leading_dim(w.question, dims_of(w));
  std::map<std::string, ExpressionArgument> arguments;
  for (const QuestionTensor& t : w.question.tensors) {
    if (!t.is_output) arguments[t.name] = {extents_of(w, t).value_or(std::vector<int64_t>()), is_sampled(t, out.lead)};
  }
  bool keeps_rows = true;
  for (const std::string& text : w.question.references) {
    auto reference = kernels::parse_reference(text);
    if (!reference) {
      out.failure = reference.error().message;
      return out;
    }
    const ExpressionCost cost = expression_cost(*reference, arguments, dims_of(w), out.lead);
    out.flops += cost.flops;
    out.work += cost.work;
    keeps_rows = keeps_rows && cost.keeps_rows;
    out.references.push_back(std::move(*reference));
  }
  if (!keeps_rows) out.lead.clear();
  return out;
}

/// Which rows are computed; empty: all.
std::vector<int64_t> sampled_rows(const Workload& w, const Expressions& expressions, const ReferenceOptions& options) {
  const double budget = options.max_flops * kShareOfBudget;
  if (expressions.lead.empty() || expressions.work <= budget) return {};
  const int64_t rows = w.dim(expressions.lead);
  const auto wanted =
      std::max<int64_t>(64, static_cast<int64_t>(static_cast<double>(rows) * budget / expressions.work));
  if (wanted >= rows) return {};
  std::vector<int64_t> picked = {0, 1, rows - 2, rows - 1};
  std::mt19937_64 random(options.sample_seed);
  while (static_cast<int64_t>(picked.size()) < wanted)
    picked.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
  std::ranges::sort(picked);
  picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
  return picked;
}

kernels::DoubleTensor loaded(const HostTensor& tensor, const std::vector<int64_t>& rows) {
  const bool is_whole = rows.empty();
  std::vector<int64_t> shape = tensor.shape;
  const auto width = static_cast<size_t>(is_whole ? tensor.numel() : tensor.numel() / std::max<int64_t>(shape[0], 1));
  if (!is_whole) shape[0] = static_cast<int64_t>(rows.size());
  kernels::DoubleTensor out = kernels::DoubleTensor::zeros(shape);
  const auto bytes_per_row = width * static_cast<size_t>(bytes(tensor.dtype));
  for (size_t r = 0; r < (is_whole ? 1 : rows.size()); ++r) {
    const size_t from = is_whole ? 0 : static_cast<size_t>(rows[r]);
    load_doubles(tensor.dtype, tensor.data.data() + from * bytes_per_row, out.data.data() + r * width, width);
  }
  return out;
}

kernels::NamedTensors named_inputs(const Workload& w, std::span<const HostTensor> inputs, const std::string& lead,
                                   const std::vector<int64_t>& rows) {
  kernels::NamedTensors out;
  for (const auto& [name, size] : w.dims) out[name] = kernels::DoubleTensor::scalar(static_cast<double>(size));
  for (const QuestionScalar& s : w.question.scalars) out[s.name] = kernels::DoubleTensor::scalar(s.value);
  size_t next = 0;
  for (const QuestionTensor& t : w.question.tensors) {
    if (!t.is_output) out[t.name] = loaded(inputs[next++], is_sampled(t, lead) ? rows : std::vector<int64_t>());
  }
  return out;
}

/// The shape the expression must have: the output's, with the sampled rows alone.
std::string shape_difference(const Argument& output, const std::vector<int64_t>& got,
                             const std::vector<int64_t>& rows) {
  std::vector<int64_t> wanted = output.shape;
  if (!rows.empty()) wanted[0] = static_cast<int64_t>(rows.size());
  if (wanted == got) return "";
  return fmt::format("the reference gives [{}], but {} is [{}]", fmt::join(got, ", "), output.name,
                     fmt::join(wanted, ", "));
}

ExpectedOutput described(const Argument& output, const std::vector<int64_t>& rows) {
  ExpectedOutput out;
  out.rows = rows;
  const int64_t lead = output.shape.empty() ? 1 : std::max<int64_t>(output.shape[0], 1);
  out.row_width = rows.empty() ? (output.shape.empty() ? 1 : output.shape.back()) : output.numel() / lead;
  return out;
}

std::vector<Argument> outputs_of(const Workload& w) {
  std::vector<Argument> out = arguments(w);
  std::erase_if(out, [](const Argument& a) { return !a.is_output(); });
  return out;
}

/// One expression in the wanted way; the failure as text.
template <typename Evaluate>
std::string for_each_output(const Workload& w, std::span<const HostTensor> inputs, const ReferenceOptions& options,
                            Evaluate evaluate) {
  const Expressions expressions = expressions_of(w);
  if (!expressions.failure.empty()) return expressions.failure;
  const std::vector<int64_t> rows = sampled_rows(w, expressions, options);
  const kernels::NamedTensors named = named_inputs(w, inputs, expressions.lead, rows);
  const std::vector<Argument> outputs = outputs_of(w);
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (std::string failure = evaluate(expressions.references[o], named, outputs[o], rows); !failure.empty())
      return failure;
  }
  return "";
}

kernels::Precision precision_of(const Workload& w) { return {w.dtypes.acc, w.dtypes.in}; }

/// Rounds to `dtype` through memory, as a store does.
void round_all(DType dtype, std::vector<double>& values) {
  std::vector<std::byte> stored(values.size() * static_cast<size_t>(bytes(dtype)));
  store_doubles(dtype, values.data(), stored.data(), values.size());
  load_doubles(dtype, stored.data(), values.data(), values.size());
}

}  // namespace

double question_flops(const Workload& workload) { return expressions_of(workload).flops; }

Expected evaluate_question(const Workload& w, std::span<const HostTensor> inputs, const ReferenceOptions& options) {
  Expected expected;
  expected.failure = for_each_output(
      w, inputs, options,
      [&](const auto& reference, const auto& named, const Argument& output, const auto& rows) -> std::string {
        auto made = kernels::evaluate_bounded(reference, named, precision_of(w));
        if (!made) return made.error().message;
        if (std::string other = shape_difference(output, made->value.shape, rows); !other.empty()) return other;
        ExpectedOutput out = described(output, rows);
        out.values = std::move(made->value.data);
        out.bound = std::move(made->bound);
        expected.outputs.push_back(std::move(out));
        return "";
      });
  return expected;
}

std::vector<ExpectedOutput> evaluate_question_declared(const Workload& w, std::span<const HostTensor> inputs,
                                                       const ReferenceOptions& options) {
  std::vector<ExpectedOutput> outputs;
  for_each_output(
      w, inputs, options,
      [&](const auto& reference, const auto& named, const Argument& output, const auto& rows) -> std::string {
        auto made = kernels::evaluate_declared(reference, named, precision_of(w));
        if (!made) return made.error().message;
        ExpectedOutput out = described(output, rows);
        out.values = std::move(made->data);
        round_all(output.dtype, out.values);
        outputs.push_back(std::move(out));
        return "";
      });
  return outputs;
}

std::string question_label(const KernelQuestion& question) {
  return fmt::format("the kernel's own expression in float64: {}", fmt::join(question.references, ", "));
}

}  // namespace tilewright::bench
