#include "bench/oracle/arguments.h"

#include <algorithm>

#include "bench/oracle/reference_kernel.h"

namespace tilewright::bench {
namespace {

using Shape = std::vector<int64_t>;

Shape with_batch(int64_t batch, Shape shape) {
  if (batch != 1) shape.insert(shape.begin(), batch);
  return shape;
}

std::vector<Argument> gemm_arguments(const Workload& w) {
  const int64_t b = w.dim("B"), m = w.dim("M"), n = w.dim("N"), k = w.dim("K");
  std::vector<Argument> args = {{"A", w.dtypes.in, with_batch(b, w.variant[0] == 't' ? Shape{k, m} : Shape{m, k})},
                                {"B", w.dtypes.in, with_batch(b, w.variant[1] == 't' ? Shape{n, k} : Shape{k, n})}};
  if (w.epilogue.bias) args.push_back({"bias", w.dtypes.out, {n}});
  args.push_back({"C", w.dtypes.out, with_batch(b, {m, n}), Role::Output});
  return args;
}

std::vector<Argument> attention_arguments(const Workload& w) {
  const int64_t b = w.dim("B"), hq = w.dim("HQ"), hk = w.dim("HKV"), sq = w.dim("SQ"), sk = w.dim("SK");
  const auto shape = [&](int64_t seq, int64_t heads, int64_t width) {
    return w.variant == "bshd" ? Shape{b, seq, heads, width} : Shape{b, heads, seq, width};
  };
  std::vector<Argument> args = {{"Q", w.dtypes.in, shape(sq, hq, w.dim("D"))},
                                {"K", w.dtypes.in, shape(sk, hk, w.dim("D"))},
                                {"V", w.dtypes.in, shape(sk, hk, w.dim("DV"))}};
  if (!w.lengths.empty()) args.push_back({"lengths", DType::I64, {b, 2}});
  args.push_back({"O", w.dtypes.out, shape(sq, hq, w.dim("DV")), Role::Output});
  return args;
}

std::vector<Argument> w4_arguments(const Workload& w) {
  const int64_t m = w.dim("M"), n = w.dim("N"), k = w.dim("K"), group = std::stoll(w.variant.substr(1));
  return {{"A", w.dtypes.in, {m, k}},
          {"W", DType::U8, {n, k / 2}, Role::Packed},
          {"scales", w.dtypes.in, {n, k / group}, Role::Scale},
          {"C", w.dtypes.out, {m, n}, Role::Output}};
}

std::vector<Argument> row_arguments(const Workload& w) {
  const int64_t r = w.dim("R"), c = w.dim("C");
  std::vector<Argument> args = {{"X", w.dtypes.in, {r, c}}};
  switch (w.operation) {
    case Operation::RmsNorm: args.push_back({"weight", w.dtypes.in, {c}, Role::Weight}); break;
    case Operation::LayerNorm:
      args.push_back({"weight", w.dtypes.in, {c}, Role::Weight});
      args.push_back({"bias", w.dtypes.in, {c}});
      break;
    case Operation::Swiglu: args = {{"A", w.dtypes.in, {r, c}}, {"B", w.dtypes.in, {r, c}}}; break;
    case Operation::Reduce: args.push_back({"Y", w.dtypes.out, {r}, Role::Output}); return args;
    case Operation::ArgReduce: args.push_back({"I", DType::I64, {r}, Role::Indices}); return args;
    case Operation::TopK: {
      const int64_t k = std::stoll(w.variant.substr(1));
      args.push_back({"Y", w.dtypes.out, {r, k}, Role::Output});
      args.push_back({"I", DType::I64, {r, k}, Role::Indices});
      return args;
    }
    case Operation::Transpose: args.push_back({"Y", w.dtypes.out, {c, r}, Role::Output}); return args;
    default: break;
  }
  args.push_back({"Y", w.dtypes.out, {r, c}, Role::Output});
  return args;
}

std::vector<Argument> element_arguments(const Workload& w) {
  Shape shape;
  for (const auto& [dim, value] : w.dims) shape.push_back(value);
  const bool two = w.operation == Operation::Add || w.operation == Operation::Mul;
  std::vector<Argument> args = {{two ? "A" : "X", w.dtypes.in, shape}};
  if (two) args.push_back({"B", w.dtypes.in, shape});
  args.push_back({two ? "C" : "Y", w.dtypes.out, shape, Role::Output});
  return args;
}

/// A question's tensors; a norm's weight or a scale is data like any other here.
std::vector<Argument> question_arguments(const Workload& w) {
  std::vector<Argument> args;
  for (const QuestionTensor& t : w.question.tensors)
    args.push_back({t.name, t.dtype, extents_of(w, t).value_or(Shape{0}), t.is_output ? Role::Output : Role::Data});
  return args;
}

/// Keys any query of the batch entry sees, as a count of rows of K (the union of the intervals is one interval here).
int64_t used_keys(const Workload& w, const SequenceLengths& lengths) {
  int64_t begin = lengths.k, end = 0;
  for (int64_t i = 0; i < lengths.q; ++i) {
    const KeyRange keys = visible_keys(w.mask, lengths, i);
    if (keys.begin == keys.end) continue;
    begin = std::min(begin, keys.begin);
    end = std::max(end, keys.end);
  }
  return std::max<int64_t>(end - begin, 0);
}

Cost attention_cost(const Workload& w) {
  const double heads = static_cast<double>(w.dim("HQ")), kv_heads = static_cast<double>(w.dim("HKV"));
  const double widths = static_cast<double>(w.dim("D") + w.dim("DV"));
  Cost cost;
  double pairs = 0;
  for (int64_t b = 0; b < w.dim("B"); ++b) {
    const SequenceLengths own =
        w.lengths.empty() ? SequenceLengths{w.dim("SQ"), w.dim("SK")} : w.lengths[static_cast<size_t>(b)];
    for (int64_t i = 0; i < own.q; ++i) {
      const KeyRange keys = visible_keys(w.mask, own, i);
      pairs += static_cast<double>(keys.end - keys.begin);
    }
    cost.bytes += static_cast<double>(used_keys(w, own)) * kv_heads * widths * bytes(w.dtypes.in);
    cost.bytes += static_cast<double>(own.q * w.dim("D")) * heads * bytes(w.dtypes.in);
  }
  cost.flops = 2 * pairs * heads * widths;
  cost.bytes += static_cast<double>(w.dim("B") * w.dim("SQ") * w.dim("DV")) * heads * bytes(w.dtypes.out);
  return cost;
}

}  // namespace

int64_t Argument::numel() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::vector<int64_t> Argument::strides() const {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

std::vector<Argument> arguments(const Workload& w) {
  switch (info(w.operation).form) {
    case DimsForm::Gemm: return w.operation == Operation::GemmW4 ? w4_arguments(w) : gemm_arguments(w);
    case DimsForm::Gemv: {
      const Shape a = w.variant == "t" ? Shape{w.dim("K"), w.dim("M")} : Shape{w.dim("M"), w.dim("K")};
      return {{"A", w.dtypes.in, a}, {"x", w.dtypes.in, {w.dim("K")}}, {"y", w.dtypes.out, {w.dim("M")}, Role::Output}};
    }
    case DimsForm::Attention: return attention_arguments(w);
    case DimsForm::Rows: return row_arguments(w);
    case DimsForm::Elements: return element_arguments(w);
    case DimsForm::Kernel: return question_arguments(w);
  }
  return {};
}

Cost minimal_cost(const Workload& w) {
  if (w.operation == Operation::Attention) return attention_cost(w);
  Cost cost;
  int64_t largest = 0;
  for (const Argument& arg : arguments(w)) {
    cost.bytes += static_cast<double>(arg.byte_count());
    largest = std::max(largest, arg.numel());
  }
  if (info(w.operation).form == DimsForm::Gemm || info(w.operation).form == DimsForm::Gemv) {
    cost.flops = 2.0 * static_cast<double>(w.dim("B")) * static_cast<double>(w.dim("M")) *
                 static_cast<double>(w.dim("N")) * static_cast<double>(w.dim("K"));
  } else if (w.operation != Operation::Transpose && w.operation != Operation::Cast) {
    cost.flops = static_cast<double>(largest);  // at least one operation per element
  }
  if (w.operation == Operation::Kernel) cost.flops = std::max(cost.flops, question_flops(w));
  return cost;
}

}  // namespace tilewright::bench
