#include "adapters/tile/tile_candidate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "adapters/tile/kernel_spelling.h"
#include "adapters/tile/kernel_target.h"
#include "adapters/tile/kernel_workload.h"
#include "base/hash.h"
#include "bench/oracle/contract.h"
#include "driver/call.h"
#include "driver/compile.h"
#include "driver/program.h"
#include "driver/toolchain.h"
#include "lang/program_digest.h"

namespace tilewright::adapters {
namespace {

using nlohmann::json;

class TileCandidate final : public candidate::Candidate {
 public:
  explicit TileCandidate(KernelSpelling spelling) : spelling_(std::move(spelling)) {}

  Status open(const candidate::OpenOptions& options) override {
    auto target = KernelTarget::of(options);
    if (!target) return std::unexpected(target.error());
    target_ = std::make_unique<KernelTarget>(std::move(*target));
    auto source = open_kernel_source(spelling_);
    if (!source) return std::unexpected(source.error());
    source_ = std::move(*source);
    return {};
  }

  Status init_device() override { return target_->open(); }

  candidate::Identity identity() const override {
    const size_t slash = spelling_.path.rfind('/');
    std::string name = spelling_.path.substr(slash == std::string::npos ? 0 : slash + 1);
    name = name.substr(0, name.find(".tile"));
    if (!spelling_.kernel.empty()) name += "-" + spelling_.kernel;
    candidate::Identity identity{.name = "tile-" + name, .version = "0.1.0", .libraries = {}};
    identity.libraries["compiler"] = to_hex(hash128(driver::toolchain_identity()));
    if (target_) identity.libraries["target"] = target_->name();
    if (source_) identity.libraries["source"] = source_digest();
    return identity;
  }

  Result<candidate::Echo> prepare(const candidate::ContractText& contract) override {
    const json wanted = json::parse(contract.json, nullptr, false);
    auto workload = bench::workload_of(wanted);
    if (!workload) return std::unexpected(workload.error());
    wanted_ = std::move(*workload);
    if (wanted.contains("eps")) eps_ = wanted["eps"].get<double>();
    auto matched = match();
    if (!matched) return std::unexpected(matched.error());
    if (bench::workload_key(*matched) == bench::workload_key(wanted_) && matched->dtypes == wanted_.dtypes) {
      return candidate::Echo{contract.digest, {}};
    }
    json mine =
        bench::contract_json(*matched, {.device = wanted.value("device", "cpu"), .math = wanted.value("math", "ieee")});
    mine["data"] = wanted["data"];
    candidate::Echo echo;
    for (const std::string& field : bench::differing_fields(wanted, mine))
      echo.differing[field] = bench::workload_key(*matched);
    if (echo.differing.empty()) echo.differing["key"] = bench::workload_key(*matched);
    return echo;
  }

  Result<candidate::Compiled> compile(const std::string& config) override {
    driver::KernelRequest request{.kernel = kernel_,
                                  .params = params_,
                                  .dims = dims_,
                                  .target = target_->language_target(),
                                  .use_example = false};
    const json settings = json::parse(config.empty() ? "{}" : config, nullptr, false);
    if (!settings.is_object())
      return fail(DiagnosticCode::E1804, "the configuration is not a JSON object", "write {\"block_M\": 96}");
    for (const auto& [name, value] : settings.items())
      request.params[name] = value.is_string() ? value.get<std::string>() : value.dump();
    if (!target_->is_open()) {
      if (Status ready = init_device(); !ready) return std::unexpected(ready.error());
    }
    const auto start = std::chrono::steady_clock::now();
    auto program = driver::load_program(*source_, request);
    if (!program) return std::unexpected(as_refusal(program.error().diagnostic));
    const double front_end =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    auto compiled = target_->compile(program->kernel, shapes_of_contract());
    if (!compiled) return std::unexpected(as_refusal(compiled.error()));
    const auto load_start = std::chrono::steady_clock::now();
    auto plan = target_->load(compiled->artefact);
    if (!plan) return std::unexpected(plan.error());
    plan_ = std::make_unique<runtime::Plan>(std::move(*plan));
    program_ = std::make_unique<driver::Program>(std::move(*program));
    bind_shapes();
    candidate::Compiled out;
    out.compiles = compiled->is_from_cache ? 0 : 1;
    out.cache_hits = compiled->is_from_cache ? 1 : 0;
    out.artefact_digest = to_hex(hash128(compiled->artefact.code));  // inside the timed call: the fast hash
    const driver::CompileTimes& t = compiled->times;
    out.phases = {
        .front_end = front_end,
        .passes = t.plan_ms,
        .codegen = t.lower_ms + t.optimise_ms + t.emit_ms,
        .toolchain = 0,
        .load = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - load_start).count() +
                t.cache_ms};
    return out;
  }

  Result<int64_t> workspace_bytes() override {
    const std::vector<candidate::Tensor> shapes = shapes_of_contract();
    point_at(shapes);
    const auto bytes = plan_->workspace_bytes({tensors_.data(), tensors_.size(), scalars_.data(), scalars_.size()});
    if (!bytes) return std::unexpected(driver::to_diagnostic(bytes.error()));
    workspace_size_ = *bytes;
    return static_cast<int64_t>(*bytes);
  }

  Status launch(std::span<const candidate::Tensor> args, void* workspace, void* stream) override {
    point_at(args);
    const auto done = plan_->execute({tensors_.data(), tensors_.size(), scalars_.data(), scalars_.size()}, workspace,
                                     workspace_size_, stream);
    if (!done) return std::unexpected(driver::to_diagnostic(done.error()));
    return {};
  }

  std::vector<std::string> installed_paths() const override { return {"/proc/self/exe", spelling_.path}; }

 private:
  /// What the kernel itself says it does not do (a `where`, a size this target has no room for) is no wrong result of
  /// its own question at that shape.
  Diagnostic as_refusal(Diagnostic d) const {
    const auto code = static_cast<int>(d.code);
    if (wanted_.operation != bench::Operation::Kernel || code >= 3000) return d;
    d.message = fmt::format("{} is not done: [{}] {}", bench::workload_key(wanted_), code_text(d.code), d.message);
    d.code = DiagnosticCode::E3201;
    return d;
  }

  /// Of the program in the file and everything it imports: its tokens, so that neither comments and white space nor
  /// where the files lie matter.
  std::string source_digest() const {
    std::set<std::string> texts;
    const auto add = [&](const Location& at) {
      if (at.file) texts.emplace(source_->text_of(*at.file));
    };
    for (const std::string& kernel : source_->kernel_names()) add(source_->find_kernel(kernel)->location);
    for (const std::string& function : source_->function_names()) add(source_->find_function(function)->location);
    std::string all;
    for (const std::string& text : texts) all += lang::program_digest(text);
    return sha256_hex(all).substr(0, 16);
  }

  /// The workload of the first kernel, and combination of its flags and dtypes, that is the contract's; else that of
  /// the first kernel at its defaults.
  Result<bench::Workload> match() {
    const std::vector<std::string> names =
        spelling_.kernel.empty() ? source_->kernel_names() : std::vector<std::string>{spelling_.kernel};
    if (names.empty()) return fail(DiagnosticCode::E1800, fmt::format("{} has no kernel", spelling_.path));
    std::optional<bench::Workload> first;
    for (const std::string& name : names) {
      auto found = match(name, first);
      if (!found && names.size() == 1) return std::unexpected(found.error());
      if (found && *found) {
        kernel_ = name;
        return **found;
      }
    }
    if (wanted_.operation == bench::Operation::Kernel && names.size() == 1) {
      if (auto fits = match_signature(names[0]); fits) return fits;
    }
    if (first && names.size() == 1) {
      kernel_ = names[0];
      return *first;
    }
    return fail(DiagnosticCode::E3201,
                fmt::format("{} cannot compute {}",
                            names.size() == 1 ? fmt::format("kernel '{}'", names[0])
                                              : fmt::format("no kernel of {}", spelling_.path),
                            bench::workload_key(wanted_)),
                "its reference or its argument shapes are of another operator");
  }

  /// A kernel that takes the question's tensors and scalars in their order can be held to its answer, whatever it says
  /// of itself.
  Result<bench::Workload> match_signature(const std::string& kernel) {
    lang::Configuration configuration = given_parameters();
    const auto refusal = [&] {
      return fail(DiagnosticCode::E3201,
                  fmt::format("kernel '{}' does not take the arguments of {}", kernel, bench::workload_key(wanted_)),
                  "the same tensors and scalars in the same order, with these dtypes, are needed");
    };
    auto info = lang::describe(*source_, kernel, configuration);
    if (!info) return std::unexpected(info.error());
    for (const lang::ParamInfo& p : info->params) {
      const bool is_dtype = std::holds_alternative<DType>(p.value) && !configuration.params.contains(p.name);
      if (is_dtype) configuration.params[p.name] = wanted_.dtypes.in;
    }
    info = lang::describe(*source_, kernel, configuration);
    if (!info) return refusal();
    const auto dims = bind_dims(*info);
    if (!dims || !has_dtypes(*info)) return refusal();
    kernel_ = kernel;
    dims_ = *dims;
    params_.clear();
    for (const auto& [name, value] : configuration.params) params_[name] = lang::to_string(value);
    return wanted_;
  }
  bool has_dtypes(const lang::KernelInfo& info) const {
    size_t tensor = 0, scalar = 0;
    for (const lang::ArgumentInfo& a : info.arguments) {
      if (!a.is_tensor) {
        if (scalar >= wanted_.question.scalars.size() || wanted_.question.scalars[scalar++].dtype != a.dtype)
          return false;
        continue;
      }
      if (a.kind == lang::ArgumentKind::Workspace || a.optional) continue;
      const bench::QuestionTensor& t = wanted_.question.tensors[tensor++];
      if (t.dtype != a.dtype || t.is_output != (a.kind == lang::ArgumentKind::Out)) return false;
    }
    return scalar == wanted_.question.scalars.size();
  }

  lang::Configuration given_parameters() const {
    lang::Configuration configuration;
    configuration.target = target_->language_target();
    for (const auto& [name, text] : spelling_.params) {
      if (auto value = lang::parse_param_value(text)) configuration.params[name] = *value;
    }
    return configuration;
  }

  Result<std::optional<bench::Workload>> match(const std::string& kernel, std::optional<bench::Workload>& first) {
    lang::Configuration configuration = given_parameters();
    auto info = lang::describe(*source_, kernel, configuration);
    if (!info) return std::unexpected(info.error());
    std::vector<lang::ParamInfo> open;
    for (const lang::ParamInfo& p : info->params) {
      const bool is_choice = !std::holds_alternative<int64_t>(p.value) || p.name == "group";
      if (is_choice && !p.domain.empty() && !configuration.params.contains(p.name)) open.push_back(p);
    }
    return search({kernel, std::move(open)}, configuration, 0, first);
  }

  /// Which parameters of which kernel are tried.
  struct Choice {
    std::string kernel;
    std::vector<lang::ParamInfo> open;
  };

  std::optional<bench::Workload> search(const Choice& choice, lang::Configuration configuration, size_t at,
                                        std::optional<bench::Workload>& first) {
    const std::vector<lang::ParamInfo>& open = choice.open;
    if (at < open.size()) {
      std::vector<lang::ParamValue> values = {open[at].value};
      for (const lang::ParamValue& v : open[at].domain) {
        if (v != open[at].value) values.push_back(v);
      }
      for (const lang::ParamValue& v : values) {
        configuration.params.erase(open[at].name);  // the default stays open: a `config` row for these sizes may set it
        if (v != open[at].value) configuration.params[open[at].name] = v;
        if (auto found = search(choice, configuration, at + 1, first)) return found;
      }
      return std::nullopt;
    }
    const auto info = lang::describe(*source_, choice.kernel, configuration);
    if (!info) return std::nullopt;
    const auto dims = bind_dims(*info);
    if (!dims) return std::nullopt;
    const auto workload = workload_of_kernel(*info, *dims);
    if (!workload) return std::nullopt;
    const bool is_it =
        bench::workload_key(*workload) == bench::workload_key(wanted_) && workload->dtypes == wanted_.dtypes;
    if (is_it || !first) {
      first = *workload;
      dims_ = *dims;
      params_.clear();
      for (const auto& [name, value] : configuration.params) params_[name] = lang::to_string(value);
    }
    if (is_it) return *workload;
    return std::nullopt;
  }

  /// The kernel's dimensions from the shapes of the contract's tensors, by position (inputs, then outputs).
  std::optional<std::map<std::string, int64_t>> bind_dims(const lang::KernelInfo& info) const {
    std::map<std::string, int64_t> dims;
    const std::vector<bench::Argument> wanted = bench::arguments(wanted_);
    size_t at = 0;
    for (const lang::ArgumentInfo& argument : info.arguments) {
      if (!argument.is_tensor || argument.kind == lang::ArgumentKind::Workspace || argument.optional) continue;
      if (at >= wanted.size() || wanted[at].shape.size() != argument.shape.size()) return std::nullopt;
      for (size_t i = 0; i < argument.shape.size(); ++i) {
        const bool is_name = std::find(info.dims.begin(), info.dims.end(), argument.shape[i]) != info.dims.end();
        if (is_name && dims.emplace(argument.shape[i], wanted[at].shape[i]).first->second != wanted[at].shape[i])
          return std::nullopt;
      }
      ++at;
    }
    // Of a question, what no shape names alone (`K // 2`) is known by name.
    for (const auto& [name, size] : wanted_.dims) {
      const bool is_of_question = wanted_.operation == bench::Operation::Kernel;
      if (is_of_question && std::find(info.dims.begin(), info.dims.end(), name) != info.dims.end())
        dims.emplace(name, size);
    }
    return at == wanted.size() ? std::optional(dims) : std::nullopt;
  }

  std::vector<candidate::Tensor> shapes_of_contract() const {
    std::vector<candidate::Tensor> shapes;
    for (const bench::Argument& argument : bench::arguments(wanted_)) {
      shapes.push_back({.name = argument.name,
                        .dtype = argument.dtype,
                        .shape = argument.shape,
                        .strides = argument.strides(),
                        .is_output = argument.is_output()});
    }
    return shapes;
  }
  void bind_shapes() { bind(shapes_of_contract()); }

  /// Between two compiles only the memory of the arguments changes: a launch costs three stores for each.
  void point_at(std::span<const candidate::Tensor> args) {
    for (size_t i = 0; i < places_.size(); ++i) {
      tw_tensor& tensor = tensors_[places_[i]];
      tensor.data = args[i].data;
      tensor.extents = args[i].shape.data();
      tensor.strides = args[i].strides.data();
    }
  }

  /// The candidate's tensors in the kernel's order (which is the contract's, workspaces and absent optionals apart).
  void bind(std::span<const candidate::Tensor> args) {
    tensors_.clear();
    scalars_.clear();
    places_.clear();
    size_t at = 0;
    for (const ir::TensorArgument& tensor : program_->kernel.tensors) {
      if (tensor.direction == ir::Direction::Workspace) continue;
      if (tensor.optional) {
        tensors_.push_back({.flags = TW_TENSOR_ABSENT});
        continue;
      }
      const candidate::Tensor& t = args[at++];
      places_.push_back(tensors_.size());
      tensors_.push_back({.data = t.data,
                          .extents = t.shape.data(),
                          .strides = t.strides.data(),
                          .dtype = static_cast<int32_t>(t.dtype),
                          .rank = static_cast<int32_t>(t.shape.size()),
                          .flags = 0,
                          .device = static_cast<int32_t>(target_->kind())});
    }
    for (const ir::ScalarArgument& scalar : program_->kernel.scalars) {
      tw_scalar value{};
      if (wanted_.operation == bench::Operation::Kernel) {
        const bench::QuestionScalar& asked = wanted_.question.scalars[scalars_.size()];
        const bool is_real = is_float(scalar.value->type.dtype);
        value.kind = is_real ? TW_SCALAR_FLOAT : TW_SCALAR_INTEGER;
        if (is_real)
          value.value.floating = asked.value;
        else
          value.value.integer = static_cast<int64_t>(asked.value);
        scalars_.push_back(value);
        continue;
      }
      value.kind = TW_SCALAR_FLOAT;
      value.value.floating = scalar_value(scalar.value->name);
      scalars_.push_back(value);
    }
  }

  /// A contract has no scales of its own for a product.
  double scalar_value(const std::string& name) const {
    if (name == "eps") return eps_;
    return wanted_.operation == bench::Operation::Attention ? bench::attention_scale(wanted_) : 1;
  }

  KernelSpelling spelling_;
  std::string kernel_;  ///< the one that does the contract
  std::unique_ptr<KernelTarget> target_;
  std::optional<lang::Source> source_;
  bench::Workload wanted_;
  double eps_ = bench::kNormEpsilon;
  std::map<std::string, int64_t> dims_;
  std::map<std::string, std::string> params_;
  std::unique_ptr<driver::Program> program_;
  std::unique_ptr<runtime::Plan> plan_;
  std::vector<tw_tensor> tensors_;
  std::vector<size_t> places_;  ///< in tensors_, of the contract's arguments
  std::vector<tw_scalar> scalars_;
  size_t workspace_size_ = 0;
};

}  // namespace

void add_tile_kind(candidate::Kinds& kinds) {
  kinds.add("tile", "our own kernels: tile:kernels/matmul.tile:matmul?block_M=96",
            [](const std::string& target) -> Result<candidate::CandidatePtr> {
              auto spelling = parse_kernel_spelling(target);
              if (!spelling) return std::unexpected(spelling.error());
              return std::make_unique<TileCandidate>(std::move(*spelling));
            });
}

}  // namespace tilewright::adapters
