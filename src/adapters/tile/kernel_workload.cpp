#include "adapters/tile/kernel_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/narrow_float.h"
#include "bench/oracle/arguments.h"
#include "kernels/reference.h"

namespace tilewright::adapters {
namespace {

using bench::Operation;
using bench::Workload;
using lang::Reference;
using Dims = std::map<std::string, int64_t>;
using bench::extent_value;

std::unexpected<Diagnostic> unknown(const lang::KernelInfo& info, std::string_view why) {
  const std::string text = info.references.empty() ? "none" : lang::to_string(info.references[0]);
  return fail_at(
      DiagnosticCode::E1810, info.location,
      fmt::format("kernel '{}' has no reference the benchmark can check ({}): {}", info.name, text, why),
      "state what every output is, over the kernel's own arguments: `reference silu(matmul(X, W)) * U` (words: "
      "docs/grammar.md), or name an operator with --op");
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

/// Whether the kernel takes exactly the operator's tensors: what else it takes would have no value.
bool takes_arguments_of(const lang::KernelInfo& info, const Workload& workload, const Dims& dims) {
  const std::vector<bench::Argument> wanted = bench::arguments(workload);
  size_t at = 0;
  Dims all = dims;
  for (const lang::ParamInfo& param : info.params) {
    if (const int64_t* value = std::get_if<int64_t>(&param.value)) all.emplace(param.name, *value);
  }
  for (const lang::ArgumentInfo& argument : info.arguments) {
    if (!argument.is_tensor || argument.kind == lang::ArgumentKind::Workspace || argument.optional) continue;
    if (at >= wanted.size() || wanted[at].shape.size() != argument.shape.size()) return false;
    for (size_t d = 0; d < argument.shape.size(); ++d) {
      const auto extent = extent_value(argument.shape[d], all);
      if (extent && *extent != wanted[at].shape[d]) return false;
    }
    ++at;
  }
  return at == wanted.size();
}

/// Fills a workload with the kernel's own question.
class Questioner {
 public:
  Questioner(const lang::KernelInfo& info, const Dims& dims) : info_(info), dims_(dims) {}

  Status ask() {
    workload.operation = Operation::Kernel;
    workload.question.kernel = info_.name;
    for (const std::string& dim : info_.dims) {
      const auto found = dims_.find(dim);
      if (found == dims_.end()) return unknown(info_, fmt::format("dimension {} is open: give --dim {}=N", dim, dim));
      workload.dims.emplace_back(dim, found->second);
    }
    for (const lang::ArgumentInfo& argument : info_.arguments) {
      if (Status added = argument.is_tensor ? add_tensor(argument) : add_scalar(argument); !added) return added;
    }
    for (const lang::Reference& reference : info_.references) {
      if (Status known = check(reference); !known) return known;
      workload.question.references.push_back(lang::to_string(reference));
    }
    const auto outputs = std::ranges::count_if(workload.question.tensors, &bench::QuestionTensor::is_output);
    if (outputs != std::ssize(info_.references)) {
      return unknown(info_, fmt::format("{} outputs and {} references; one for every output is needed", outputs,
                                        info_.references.size()));
    }
    workload.dtypes = dtypes();
    return bench::validate(workload);
  }

  Workload workload;

 private:
  Status check(const lang::Reference& reference) const {
    std::vector<std::string> names = info_.dims;
    for (const lang::ArgumentInfo& a : info_.arguments) names.push_back(a.name);
    return kernels::check_words(reference, names);
  }

  Status add_tensor(const lang::ArgumentInfo& argument) {
    using Kind = lang::ArgumentKind;
    if (argument.kind == Kind::Workspace) return {};
    if (argument.kind == Kind::InOut) {
      return unknown(info_,
                     fmt::format("it changes {} in place, so a second call would not compute the same", argument.name));
    }
    if (argument.optional) return {};
    bench::QuestionTensor tensor{argument.name, argument.dtype, {}, argument.kind == Kind::Out};
    for (const std::string& text : argument.shape) tensor.shape.push_back(with_parameters(text));
    workload.question.tensors.push_back(std::move(tensor));
    return {};
  }

  /// Names of parameters are replaced by their values.
  std::string with_parameters(const std::string& text) const {
    std::string out, word;
    const auto flush = [&] {
      const auto found = std::ranges::find(info_.params, word, &lang::ParamInfo::name);
      out += found == info_.params.end() ? word : lang::to_string(found->value);
      word.clear();
    };
    for (const char c : text) {
      const bool is_word = (std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_';
      if (is_word) {
        word += c;
        continue;
      }
      flush();
      out += c;
    }
    flush();
    return out;
  }

  /// Its default; half, or two, where it has none.
  Status add_scalar(const lang::ArgumentInfo& argument) {
    double value = is_float(argument.dtype) ? 0.5 : 2;
    if (argument.default_value) {
      const auto parsed = kernels::parse_reference(with_parameters(*argument.default_value));
      const auto computed = parsed ? kernels::evaluate_reference(*parsed, {}) : std::unexpected(parsed.error());
      if (!computed || computed->data.size() != 1) {
        return unknown(info_,
                       fmt::format("the default of {} is not a number: {}", argument.name, *argument.default_value));
      }
      value = computed->data[0];
    }
    if (argument.dtype == DType::F32) value = static_cast<double>(static_cast<float>(value));
    workload.question.scalars.push_back({argument.name, argument.dtype, value});
    return {};
  }

  /// Storage and arithmetic of the first floating-point argument; the kernel's own precision where all are integers.
  bench::DTypes dtypes() const {
    std::optional<DType> in, out;
    const auto better = [](std::optional<DType>& held, DType dtype) {
      if (!held || (!is_float(*held) && is_float(dtype))) held = dtype;
    };
    bool is_wide = false;
    for (const bench::QuestionTensor& tensor : workload.question.tensors) {
      better(tensor.is_output ? out : in, tensor.dtype);
      is_wide |= tensor.dtype == DType::F64;
    }
    const DType first = in.value_or(out.value_or(DType::F32)), last = out.value_or(first);
    const DType computed = is_float(first) ? first : last;
    const DType acc = is_wide ? DType::F64 : is_float(computed) ? compute_type(computed) : DType::I32;
    return {first, acc, last};
  }

  const lang::KernelInfo& info_;
  const Dims& dims_;
};

}  // namespace

Result<Workload> workload_of_kernel(const lang::KernelInfo& info, const Dims& dims) {
  if (info.references.empty()) return unknown(info, "the kernel has no `reference` line");
  const auto dtypes = dtypes_of(info);
  if (!dtypes) return question_of_kernel(info, dims);
  Builder builder{info, dims, {}};
  builder.w.dtypes = *dtypes;
  const bool is_known = builder.set(info.references[0]) && bench::validate(builder.w);
  if (is_known && takes_arguments_of(info, builder.w, dims)) return builder.w;
  return question_of_kernel(info, dims);
}

Result<Workload> question_of_kernel(const lang::KernelInfo& info, const Dims& dims) {
  if (info.references.empty()) return unknown(info, "the kernel has no `reference` line");
  Questioner questioner(info, dims);
  if (Status asked = questioner.ask(); !asked) return std::unexpected(asked.error());
  return std::move(questioner.workload);
}

}  // namespace tilewright::adapters
