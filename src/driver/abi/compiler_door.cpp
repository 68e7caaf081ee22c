// The compiler behind the C ABI of tilewright.h: a `.tile` file and the arguments of a call, to a serialised artefact.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "cache/kernel_cache.h"
#include "driver/compile.h"
#include "driver/cuda_compile.h"
#include "driver/program.h"
#include "driver/target_name.h"
#include "runtime/compiler_door.h"

namespace tilewright::runtime {
namespace {

using nlohmann::json;

std::unexpected<CompilerFailure> refuse(const Diagnostic& diagnostic, std::string rendered) {
  return std::unexpected(
      CompilerFailure{static_cast<int32_t>(diagnostic.code), std::string(name(diagnostic.code)), std::move(rendered)});
}

std::unexpected<CompilerFailure> refuse(const Diagnostic& diagnostic) { return refuse(diagnostic, render(diagnostic)); }

const char* access(lang::ArgumentKind kind) {
  switch (kind) {
    case lang::ArgumentKind::In: return "in";
    case lang::ArgumentKind::Out: return "out";
    case lang::ArgumentKind::InOut: return "inout";
    case lang::ArgumentKind::Workspace: break;
  }
  return "workspace";
}

json describe_kernel(const lang::KernelInfo& info) {
  json out = {{"name", info.name},
              {"doc", info.doc},
              {"tensors", json::array()},
              {"scalars", json::array()},
              {"parameters", json::array()}};
  for (const lang::ArgumentInfo& argument : info.arguments) {
    if (argument.kind == lang::ArgumentKind::Workspace) continue;
    json row = {{"name", argument.name}, {"dtype", name(argument.dtype)}};
    if (argument.is_tensor) {
      row.update({{"rank", argument.shape.size()},
                  {"access", access(argument.kind)},
                  {"optional", argument.optional},
                  {"shape", argument.shape}});
      out["tensors"].push_back(row);
    } else {
      row["default"] = argument.default_value ? json(*argument.default_value) : json(nullptr);
      out["scalars"].push_back(row);
    }
  }
  for (const lang::ParamInfo& param : info.params)
    out["parameters"].push_back({{"name", param.name}, {"default", lang::to_string(param.value)}});
  return out;
}

/// The arguments of a call against the kernel's tensors, in order.
class CallShape {
 public:
  CallShape(const lang::KernelInfo& info, const tw_arguments& arguments) {
    size_t position = 0;
    for (const lang::ArgumentInfo& argument : info.arguments) {
      if (!argument.is_tensor || argument.kind == lang::ArgumentKind::Workspace) continue;
      if (position == arguments.tensor_count) break;
      const tw_tensor& tensor = arguments.tensors[position++];
      if (!(tensor.flags & TW_TENSOR_ABSENT))
        pairs_.emplace_back(&argument, &tensor);
      else if (argument.optional)
        absent_.insert(argument.name);
    }
  }

  /// Optional tensors that the call leaves out.
  const std::set<std::string>& absent() const { return absent_; }

  int dtype_mismatches() const {
    return static_cast<int>(std::ranges::count_if(pairs_, [](const auto& pair) {
      return pair.second->dtype >= 0 && pair.second->dtype != static_cast<int32_t>(pair.first->dtype);
    }));
  }

  /// Extents that are a bare dimension give it its size.
  void bind(const lang::KernelInfo& info, std::map<std::string, int64_t>& dims) const {
    for (const auto& [argument, tensor] : pairs_) {
      if (!tensor->extents) continue;
      const size_t rank = std::min(argument->shape.size(), static_cast<size_t>(std::max(0, tensor->rank)));
      for (size_t axis = 0; axis < rank; ++axis) {
        if (std::ranges::count(info.dims, argument->shape[axis]))
          dims.emplace(argument->shape[axis], tensor->extents[axis]);
      }
    }
  }

  /// The dtypes that the call brings.
  std::vector<DType> dtypes() const {
    std::vector<DType> out;
    for (const auto& [argument, tensor] : pairs_) {
      if (tensor->dtype < 0 || tensor->dtype > static_cast<int32_t>(DType::E5M2)) continue;
      const auto dtype = static_cast<DType>(tensor->dtype);
      if (!std::ranges::count(out, dtype)) out.push_back(dtype);
    }
    return out;
  }

 private:
  std::vector<std::pair<const lang::ArgumentInfo*, const tw_tensor*>> pairs_;
  std::set<std::string> absent_;
};

class Compiler final : public CompilerDoor {
 public:
  std::expected<CompilerOutput, CompilerFailure> describe(std::string_view path) override {
    const auto source = lang::load_source(std::string(path));
    if (!source) return refuse(source.error());
    json kernels = json::array();
    for (const std::string& kernel : source->kernel_names()) {
      const auto info = lang::describe(*source, kernel, {});
      if (!info) return refuse(info.error(), source->render(info.error()));
      kernels.push_back(describe_kernel(*info));
    }
    return CompilerOutput{json{{"kernels", kernels}}.dump(), false};
  }

  std::expected<CompilerOutput, CompilerFailure> compile(const CompilerRequest& request) override;

 private:
  cache::KernelCache* cache_for(const CompilerRequest& request);

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<cache::KernelCache>> caches_;  ///< by folder
};

cache::KernelCache* Compiler::cache_for(const CompilerRequest& request) {
  const std::string folder = request.has_cache_folder ? request.cache_folder : cache::default_folder();
  if (folder.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  auto& cache = caches_[folder];
  if (!cache) cache = std::make_unique<cache::KernelCache>(cache::CacheOptions{.folder = folder});
  return cache.get();
}

/// The text that a diagnostic of an unparsed source points into.
std::string text_of(const CompilerRequest& request, const Diagnostic& diagnostic) {
  if (request.has_source || !diagnostic.location.file) return request.source;
  std::ifstream file(*diagnostic.location.file, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::expected<lang::Source, CompilerFailure> read_source(const CompilerRequest& request) {
  auto source = request.has_source ? lang::parse_source(request.source, request.path) : lang::load_source(request.path);
  if (source) return std::move(*source);
  return refuse(source.error(), render(source.error(), text_of(request, source.error())));
}

/// Dtype parameters that the caller left open take the dtypes of the arguments, when the kernel then fits better.
std::expected<void, Diagnostic> infer_dtypes(const lang::Source& source, const tw_arguments& arguments,
                                             driver::KernelRequest& request) {
  const auto mismatches = [&](const std::map<std::string, std::string>& texts) -> std::optional<int> {
    lang::Configuration configuration{.target = request.target};
    for (const auto& [param, text] : texts) {
      if (const auto value = lang::parse_param_value(text)) configuration.params.emplace(param, *value);
    }
    const auto info = lang::describe(source, request.kernel, configuration);
    return info ? std::optional(CallShape(*info, arguments).dtype_mismatches()) : std::nullopt;
  };
  const auto info = lang::describe(source, request.kernel, {});
  if (!info) return std::unexpected(info.error());
  std::optional<int> best = mismatches(request.params);
  for (const lang::ParamInfo& param : info->params) {
    if (best == 0) break;
    if (!std::holds_alternative<DType>(param.value) || request.params.contains(param.name)) continue;
    for (const DType dtype : CallShape(*info, arguments).dtypes()) {
      auto texts = request.params;
      texts[param.name] = name(dtype);
      const std::optional<int> with = mismatches(texts);
      if (!with || (best && *with >= *best)) continue;
      best = with;
      request.params = std::move(texts);
    }
  }
  return {};
}

/// The class that a call needs on a GPU: base addresses and pitches in steps of 16 bytes or not, extents that take
/// 64-bit index arithmetic. What a call does not say counts as the common case.
plan::gpu::Options class_of(const tw_arguments* arguments) {
  plan::gpu::Options out;
  if (!arguments) return out;
  for (const tw_scalar& s : std::span(arguments->scalars, arguments->scalar_count))
    out.wide_indices |= s.kind == TW_SCALAR_INTEGER &&
                        (s.value.integer > plan::gpu::kLargestExtent || s.value.integer < -plan::gpu::kLargestExtent);
  for (const tw_tensor& t : std::span(arguments->tensors, arguments->tensor_count)) {
    const bool has_size = t.dtype >= 0 && t.dtype <= static_cast<int32_t>(DType::E5M2);
    // A rank that no kernel has promises no array of so many extents: tw_execute names it.
    if (t.flags & TW_TENSOR_ABSENT || !t.extents || t.rank > TW_MAX_RANK || !has_size) continue;
    const int64_t size = bytes(static_cast<DType>(t.dtype));
    if (reinterpret_cast<uintptr_t>(t.data) % 16 != 0) out.aligned = false;
    int64_t dense = 1;
    for (int32_t axis = t.rank - 1; axis >= 0; --axis) {
      const int64_t stride = t.strides ? t.strides[axis] : dense;
      if (axis + 1 < t.rank && static_cast<uint64_t>(stride) * static_cast<uint64_t>(size) % 16 != 0)
        out.aligned = false;
      if (t.extents[axis] > plan::gpu::kLargestExtent) out.wide_indices = true;
      dense = ir::wrapping_mul(dense, t.extents[axis]);
    }
  }
  return out;
}

tilewright::Result<driver::Compilation> compile_for(const std::string& target, const CompilerRequest& request,
                                                    const ir::Kernel& kernel, cache::KernelCache* cache) {
  if (driver::is_cuda_name(target)) {
    const auto gpu = driver::gpu_named(target);
    if (!gpu) return std::unexpected(gpu.error());
    return driver::compile_cuda(kernel,
                                {.gpu = *gpu, .plan = class_of(request.arguments), .for_device = true, .cache = cache});
  }
  const auto cpu = driver::cpu_named(target);
  if (!cpu) return std::unexpected(cpu.error());
  return driver::compile(kernel, {.cpu = *cpu, .cache = cache});
}

std::unexpected<CompilerFailure> refuse(const Failure& failure) {
  return std::unexpected(
      CompilerFailure{static_cast<int32_t>(failure.code), std::string(name(failure.code)), failure.message});
}

std::expected<CompilerOutput, CompilerFailure> Compiler::compile(const CompilerRequest& request) {
  const auto source = read_source(request);
  if (!source) return std::unexpected(source.error());
  const std::string target = request.target.empty() ? "cpu" : request.target;
  driver::KernelRequest asked{.path = request.path, .kernel = request.kernel, .use_example = false};
  if (driver::is_cuda_name(target)) asked.target = lang::Target::Cuda;
  if (asked.kernel.empty() && source->kernel_names().size() == 1) asked.kernel = source->kernel_names()[0];
  for (const std::string& text : request.parameters) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos)
      return refuse(Failure{FailureCode::compile_failed, "'" + text + "' is not NAME=VALUE"});
    asked.params[text.substr(0, equals)] = text.substr(equals + 1);
  }
  if (request.arguments) {
    if (const auto inferred = infer_dtypes(*source, *request.arguments, asked); !inferred) {
      return refuse(inferred.error(), source->render(inferred.error()));
    }
    const auto info = lang::describe(*source, asked.kernel, {});
    if (!info) return refuse(info.error(), source->render(info.error()));
    const CallShape shape(*info, *request.arguments);
    shape.bind(*info, asked.dims);
    asked.absent = shape.absent();
  }
  const auto program = driver::load_program(*source, asked);
  if (!program) return refuse(program.error().diagnostic, program.error().rendered);
  const auto compiled = compile_for(target, request, program->kernel, cache_for(request));
  if (!compiled) return refuse(compiled.error(), source->render(compiled.error()));
  return CompilerOutput{serialise(compiled->artefact), compiled->is_from_cache};
}

}  // namespace

std::unique_ptr<CompilerDoor> open_compiler() { return std::make_unique<Compiler>(); }

}  // namespace tilewright::runtime
