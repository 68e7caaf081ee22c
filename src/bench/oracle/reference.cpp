#include "bench/oracle/reference.h"

#include <algorithm>
#include <random>

#include "bench/oracle/arguments.h"
#include "bench/oracle/reference_kernel.h"
#include "bench/oracle/reference_parts.h"

namespace tilewright::bench {
namespace {

/// A sum of products, so that the absolute rule applies.
bool is_sum(const Workload& w) {
  switch (w.operation) {
    case Operation::Gemm:
    case Operation::Gemv:
    case Operation::GemmW4:
    case Operation::Cumsum: return true;
    case Operation::Reduce: return w.variant == "sum" || w.variant == "mean" || w.variant == "abssum";
    default: return false;
  }
}

/// Whether rows of the first output can be computed one by one (and so be sampled).
bool can_sample(const Workload& w) {
  return w.operation == Operation::Attention || info(w.operation).form == DimsForm::Gemm;
}

std::vector<int64_t> sampled_rows(const Workload& w, int64_t rows, const ReferenceOptions& options) {
  const double flops = minimal_cost(w).flops;
  if (!can_sample(w) || flops <= options.max_flops) return {};
  const auto wanted =
      std::max<int64_t>(64, static_cast<int64_t>(static_cast<double>(rows) * options.max_flops / flops));
  if (wanted >= rows) return {};
  std::vector<int64_t> picked = {0, 1, rows - 2, rows - 1};
  std::mt19937_64 random(options.sample_seed);
  while (static_cast<int64_t>(picked.size()) < wanted) {
    picked.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
  }
  std::ranges::sort(picked);
  picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
  return picked;
}

/// Values per row of an output: its innermost extent for sampled operators, the same for everyone else.
int64_t row_width(const Workload& w, const Argument& output) {
  if (w.operation == Operation::Gemv || output.shape.empty()) return 1;
  return output.shape.back();
}

template <typename Real>
std::vector<Real> loaded(const HostTensor& tensor) {
  std::vector<Real> values(static_cast<size_t>(tensor.numel()));
  if constexpr (std::is_same_v<Real, double>) {
    load_doubles(tensor.dtype, tensor.data.data(), values.data(), values.size());
  } else {
    load_floats(tensor.dtype, tensor.data.data(), values.data(), values.size());
  }
  return values;
}

template <typename Real>
Evaluation<Real> evaluate(const Workload& w, std::span<const HostTensor> inputs, const ReferenceOptions& options,
                          bool exact) {
  Evaluation<Real> e{w, {exact, w.dtypes}, {}, {}, exact && is_sum(w), {}, {}};
  for (const HostTensor& tensor : inputs) e.inputs.push_back(loaded<Real>(tensor));
  for (const Argument& arg : arguments(w)) {
    if (!arg.is_output()) continue;
    const int64_t width = row_width(w, arg);
    if (e.outputs.empty()) e.rows = sampled_rows(w, width ? arg.numel() / width : 0, options);
    const int64_t count = e.rows.empty() ? arg.numel() : static_cast<int64_t>(e.rows.size()) * width;
    e.outputs.emplace_back(static_cast<size_t>(count), Real(0));
  }
  switch (info(w.operation).form) {
    case DimsForm::Gemm:
    case DimsForm::Gemv: evaluate_gemm(e); break;
    case DimsForm::Attention: evaluate_attention(e); break;
    case DimsForm::Rows: evaluate_rows(e); break;
    case DimsForm::Elements: evaluate_elements(e); break;
    case DimsForm::Kernel: break;  // reference_kernel.cpp
  }
  return e;
}

template <typename Real>
std::vector<ExpectedOutput> as_outputs(Evaluation<Real>&& e) {
  std::vector<ExpectedOutput> outputs;
  for (const Argument& arg : arguments(e.workload)) {
    if (!arg.is_output()) continue;
    ExpectedOutput out;
    const std::vector<Real>& values = e.outputs[outputs.size()];
    out.values.assign(values.begin(), values.end());
    out.row_width = row_width(e.workload, arg);
    out.rows = e.rows;
    outputs.push_back(std::move(out));
  }
  outputs[0].magnitude.assign(e.magnitude.begin(), e.magnitude.end());
  return outputs;
}

/// Largest slope of the epilogue's activation: gelu 1.129, silu 1.100.
double largest_slope(Epilogue::Activation activation) {
  switch (activation) {
    case Epilogue::Activation::None:
    case Epilogue::Activation::Relu: return 1;
    case Epilogue::Activation::Gelu: return 1.13;
    case Epilogue::Activation::Silu: return 1.1;
  }
  return 1;
}

/// Rounds to `dtype` through memory, as a store does.
void round_all(DType dtype, std::vector<double>& values) {
  std::vector<std::byte> stored(values.size() * static_cast<size_t>(bytes(dtype)));
  store_doubles(dtype, values.data(), stored.data(), values.size());
  load_doubles(dtype, stored.data(), values.data(), values.size());
}

}  // namespace

Expected evaluate_oracle(const Workload& w, std::span<const HostTensor> inputs, const ReferenceOptions& options) {
  if (w.operation == Operation::Kernel) return evaluate_question(w, inputs, options);
  Expected expected;
  expected.outputs = as_outputs(evaluate<double>(w, inputs, options, true));
  if (!is_sum(w)) return expected;
  expected.terms = info(w.operation).form == DimsForm::Rows ? w.dim("C") : w.dim("K");
  if (w.epilogue.bias || w.variant == "mean") ++expected.terms;
  expected.lipschitz = largest_slope(w.epilogue.activation);
  if (w.operation == Operation::GemmW4) expected.extra_roundoff = unit_roundoff(w.dtypes.in);
  return expected;
}

std::vector<ExpectedOutput> evaluate_declared(const Workload& w, std::span<const HostTensor> inputs,
                                              const ReferenceOptions& options) {
  if (w.operation == Operation::Kernel) return evaluate_question_declared(w, inputs, options);
  const bool wide = w.dtypes.acc == DType::F64 || is_int(w.dtypes.acc);
  auto outputs = wide ? as_outputs(evaluate<double>(w, inputs, options, false))
                      : as_outputs(evaluate<float>(w, inputs, options, false));
  size_t next = 0;
  for (const Argument& arg : arguments(w)) {
    if (arg.is_output()) round_all(arg.dtype, outputs[next++].values);
  }
  return outputs;
}

}  // namespace tilewright::bench
