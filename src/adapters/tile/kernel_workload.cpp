#include "adapters/tile/kernel_workload.h"

#include <fmt/format.h>

#include <charconv>

namespace tilewright::adapters {
namespace {

using bench::Operation;
using bench::Workload;
using lang::Reference;
using Dims = std::map<std::string, int64_t>;

std::unexpected<Diagnostic> unknown(const lang::KernelInfo& info, std::string_view why) {
  const std::string text = info.references.empty() ? "none" : lang::to_string(info.references[0]);
  return fail_at(
      DiagnosticCode::E1810, info.location,
      fmt::format("kernel '{}' has no reference the benchmark can check ({}): {}", info.name, text, why),
      "state `reference matmul(A, B)`, attention, softmax, … over the kernel's own arguments, or name one with --op");
}

/// Shape of the argument called `name`, evaluated.
std::optional<std::vector<int64_t>> shape_of(const lang::KernelInfo& info, const std::string& name, const Dims& dims) {
  for (const lang::ArgumentInfo& argument : info.arguments) {
    if (argument.name != name || !argument.is_tensor) continue;
    std::vector<int64_t> out;
    for (const std::string& text : argument.shape) {
      const auto extent = extent_value(text, dims);
      if (!extent) return std::nullopt;
      out.push_back(*extent);
    }
    return out;
  }
  return std::nullopt;
}

const Reference* named(const Reference& call, std::string_view name) {
  for (const auto& [key, value] : call.named) {
    if (key == name) return &value;
  }
  return nullptr;
}
bool flag(const Reference& call, std::string_view name) {
  const Reference* value = named(call, name);
  return value && value->kind == Reference::Kind::Flag && value->flag;
}

std::optional<bench::DTypes> dtypes_of(const lang::KernelInfo& info) {
  std::optional<DType> in, out;
  for (const lang::ArgumentInfo& argument : info.arguments) {
    if (!argument.is_tensor) continue;
    if (argument.kind == lang::ArgumentKind::In && !in) in = argument.dtype;
    if (argument.kind == lang::ArgumentKind::Out && !out) out = argument.dtype;
  }
  if (!in || !out) return std::nullopt;
  const DType acc = is_int(*in) ? DType::I32 : compute_type(*in);
  return bench::DTypes{*in, acc, *out};
}

struct Builder {
  const lang::KernelInfo& info;
  const Dims& dims;
  Workload w;

  std::optional<std::vector<int64_t>> operand(const Reference& call, size_t i) const {
    if (i >= call.arguments.size() || call.arguments[i].kind != Reference::Kind::Name) return std::nullopt;
    return shape_of(info, call.arguments[i].name, dims);
  }

  bool set_gemm(const Reference& call) {
    const auto a = operand(call, 0), b = operand(call, 1);
    if (!a || !b || a->size() < 2 || b->size() < 2) return false;
    const bool ta = flag(call, "transpose_a"), tb = flag(call, "transpose_b");
    w.operation = Operation::Gemm;
    w.variant = fmt::format("{}{}", ta ? 't' : 'n', tb ? 't' : 'n');
    const size_t ra = a->size(), rb = b->size();
    if (ra == 3 && rb == 3)
      w.dims = {{"B", (*a)[0]}};
    else if (ra != 2 || rb != 2)
      return false;
    w.dims.emplace_back("M", (*a)[ra - (ta ? 1 : 2)]);
    w.dims.emplace_back("N", (*b)[rb - (tb ? 2 : 1)]);
    w.dims.emplace_back("K", (*a)[ra - (ta ? 2 : 1)]);
    return true;
  }

  /// A · Bᵀ of narrow floats, its scales (scalars of the call) being 1.
  bool set_scaled(const Reference& call) {
    if (!set_gemm(call) || w.dims.size() != 3) return false;
    w.variant = "nt";
    const auto b = operand(call, 1);
    w.dims[1].second = (*b)[0];
    return true;
  }

  /// relu(matmul(…)) and epilogue(matmul(…), bias, residual, relu = …, gelu = …); an optional argument nobody passes is
  /// absent.
  bool set_epilogue(const Reference& call) {
    if (call.arguments.empty() || call.arguments[0].name != "matmul" || !set_gemm(call.arguments[0])) return false;
    using Activation = bench::Epilogue::Activation;
    if (call.name == "relu" || flag(call, "relu")) w.epilogue.activation = Activation::Relu;
    if (call.name == "gelu" || flag(call, "gelu")) w.epilogue.activation = Activation::Gelu;
    return true;
  }

  bool set_attention(const Reference& call) {
    const auto q = operand(call, 0), k = operand(call, 1), v = operand(call, 2);
    if (!q || !k || !v || q->size() != 4 || k->size() != 4 || v->size() != 4) return false;
    const Reference* layout = named(call, "layout");
    w.operation = Operation::Attention;
    w.variant = layout ? layout->name : "bshd";
    const size_t seq = w.variant == "bhsd" ? 2 : 1, head = 3 - seq;
    w.dims = {{"B", (*q)[0]},    {"HQ", (*q)[head]}, {"HKV", (*k)[head]}, {"SQ", (*q)[seq]},
              {"SK", (*k)[seq]}, {"D", (*q)[3]},     {"DV", (*v)[3]}};
    const Reference* mask = named(call, "mask");
    if (!mask || mask->name == "none")
      w.mask.kind = bench::MaskKind::None;
    else if (mask->name == "causal_bottom_right")
      w.mask.kind = bench::MaskKind::CausalBottomRight;
    else if (mask->name == "causal_top_left")
      w.mask.kind = bench::MaskKind::CausalTopLeft;
    else
      return false;
    return true;
  }

  bool set_rows(const Reference& call, Operation operation, std::string variant = "") {
    const auto x = operand(call, 0);
    if (!x || x->size() != 2) return false;
    w.operation = operation;
    w.variant = std::move(variant);
    w.dims = {{"R", (*x)[0]}, {"C", (*x)[1]}};
    return true;
  }

  bool set_elements(const Reference& call, Operation operation, std::string variant = "") {
    const auto x = operand(call, 0);
    if (!x || x->empty() || x->size() > 4) return false;
    auto base = bench::parse_workload(fmt::format("{}:1", bench::info(operation).name), w.dtypes);
    if (!base) return false;
    w.operation = operation;
    w.variant = std::move(variant);
    std::string key = fmt::format("{}:", bench::info(operation).name);
    for (size_t i = 0; i < x->size(); ++i) key += fmt::format("{}{}", i ? "x" : "", (*x)[i]);
    auto parsed = bench::parse_workload(w.variant.empty() ? key : key + ":" + w.variant, w.dtypes);
    if (parsed) w = *parsed;
    return parsed.has_value();
  }

  bool set_w4(const Reference& call) {
    const auto a = operand(call, 0), packed = operand(call, 1);
    const Reference* group = named(call, "group");
    if (!a || !packed || !group) return false;
    w.operation = Operation::GemmW4;
    w.variant = fmt::format("g{}", static_cast<int64_t>(group->number));
    w.dims = {{"M", (*a)[0]}, {"N", (*packed)[0]}, {"K", (*a)[1]}};
    return true;
  }

  bool set_gemv(const Reference& call) {
    const auto a = operand(call, 0);
    if (!a || a->size() != 2) return false;
    const bool t = flag(call, "transpose_a");
    w.operation = Operation::Gemv;
    w.variant = t ? "t" : "n";
    w.dims = {{"M", (*a)[t ? 1 : 0]}, {"K", (*a)[t ? 0 : 1]}};
    return true;
  }

  bool set_top_k(const Reference& call) {
    const auto n = call.arguments.size() > 1 ? extent_value(call.arguments[1].name, dims) : std::nullopt;
    return n && set_rows(call, Operation::TopK, fmt::format("k{}", *n));
  }

  bool set(const Reference& call) {
    const std::string& f = call.name;
    if (call.kind != Reference::Kind::Call) return false;
    if (f == "matmul") return set_gemm(call);
    if (f == "epilogue") return set_epilogue(call);
    if (f == "attention") return set_attention(call);
    if (f == "softmax") return set_rows(call, Operation::Softmax);
    if (f == "rmsnorm") return set_rows(call, Operation::RmsNorm);
    if (f == "layernorm") return set_rows(call, Operation::LayerNorm);
    if (f == "row_sum") return set_rows(call, Operation::Reduce, "sum");
    if (f == "row_mean") return set_rows(call, Operation::Reduce, "mean");
    if (f == "row_max" && info.references.size() == 1) return set_rows(call, Operation::Reduce, "max");
    if (f == "cumsum") return set_rows(call, Operation::Cumsum);
    if (f == "transpose") return set_rows(call, Operation::Transpose);
    if (f == "swiglu") return set_rows(call, Operation::Swiglu);
    if (f == "topk_values") return set_top_k(call);
    if (f == "matmul_scaled") return set_scaled(call);
    if (f == "matmul_w4") return set_w4(call);
    if (f == "gemv") return set_gemv(call);
    if (f == "add") return set_elements(call, Operation::Add);
    if (f == "mul") return set_elements(call, Operation::Mul);
    if (f == "silu") return set_elements(call, Operation::Silu);
    if (f == "exp") return set_elements(call, Operation::Exp);
    if (f == "cast") return set_elements(call, Operation::Cast);
    if (f == "gelu" && call.arguments.size() == 1 && call.arguments[0].kind == Reference::Kind::Name) {
      return set_elements(call, Operation::Gelu, flag(call, "by_tanh") ? "tanh" : "erf");
    }
    if (f == "relu" && call.arguments.size() == 1 && call.arguments[0].kind == Reference::Kind::Name) {
      return set_elements(call, Operation::Relu);
    }
    return (f == "relu" || f == "gelu") && set_epilogue(call);
  }
};

}  // namespace

std::optional<int64_t> extent_value(const std::string& text, const Dims& dims) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  if (const auto found = dims.find(text); found != dims.end()) return found->second;
  const size_t division = text.find(" // ");
  if (division == std::string::npos) return std::nullopt;
  const auto left = extent_value(text.substr(0, division), dims), right = extent_value(text.substr(division + 4), dims);
  if (!left || !right || *right == 0) return std::nullopt;
  return *left / *right;
}

Result<Workload> workload_of_kernel(const lang::KernelInfo& info, const Dims& dims) {
  if (info.references.empty()) return unknown(info, "the kernel has no `reference` line");
  const auto dtypes = dtypes_of(info);
  if (!dtypes) return unknown(info, "it needs a tensor input and an output");
  Builder builder{info, dims, {}};
  builder.w.dtypes = *dtypes;
  if (!builder.set(info.references[0])) return unknown(info, "the operands or the function are not in the table");
  if (Status valid = bench::validate(builder.w); !valid) return std::unexpected(valid.error());
  return builder.w;
}

}  // namespace tilewright::adapters
