#include "tools/compiler/kernel_tuning.h"

#include <fmt/format.h>

#include <memory>
#include <set>

#include "adapters/tile/kernel_workload.h"
#include "base/hash.h"
#include "driver/program.h"
#include "ir/printer.h"
#include "plan/cpu/plan.h"

namespace tilewright::tools {
namespace {

using nlohmann::json;

/// Above this many points the planner is not asked about each: the search draws few of them, and a trial finds out too.
constexpr size_t kMostPlanned = 4096;

json value_json(const lang::ParamValue& value) {
  if (const int64_t* number = std::get_if<int64_t>(&value)) return *number;
  return lang::to_string(value);
}

/// Tries one value of a parameter: is it another program for the same workload, or another workload?
bool changes_workload(const lang::Source& source, const driver::Program& program, const lang::ParamInfo& param,
                      const bench::Workload& workload) {
  for (const lang::ParamValue& value : param.domain) {
    lang::Configuration other = program.configuration;
    other.params[param.name] = value;
    const auto info = lang::describe(source, program.info.name, other);
    if (!info) continue;
    const auto changed = adapters::workload_of_kernel(*info, other.dims);
    if (!changed || bench::workload_key(*changed) != bench::workload_key(workload) ||
        changed->dtypes != workload.dtypes) {
      return true;
    }
  }
  return false;
}

/// Asks the language and the planner about points, and remembers which programs it has seen.
class Pruner {
 public:
  Pruner(lang::Source source, driver::KernelRequest request)
      : source_(std::move(source)), request_(std::move(request)) {}

  std::optional<std::string> operator()(const std::map<std::string, std::string>& point, bool plans) {
    driver::KernelRequest request = request_;
    for (const auto& [name, value] : point) request.params[name] = value;
    const auto program = driver::load_program(source_, request);
    if (!program) return reason(program.error().diagnostic);
    if (!plans) return std::nullopt;
    const auto plan = plan::cpu::plan(program->kernel, target::host_cpu());
    if (!plan) return reason(plan.error());
    const bool is_new = seen_.insert(to_hex(hash128(ir::to_text(plan->vector)))).second;
    return is_new ? std::nullopt : std::optional<std::string>("the same program as an earlier point");
  }

 private:
  static std::string reason(const Diagnostic& diagnostic) {
    return fmt::format("[{}] {}", code_text(diagnostic.code), diagnostic.message);
  }

  lang::Source source_;
  driver::KernelRequest request_;
  std::set<std::string> seen_;
};

std::map<std::string, std::string> texts_of(const tune::Config& config) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : config.values()) out[name] = tune::to_string(value);
  return out;
}

std::string spelling_of(const KernelTuningRequest& request, const std::string& kernel) {
  std::string text = fmt::format("tile:{}:{}", request.path, kernel);
  char separator = '?';
  for (const auto& [name, value] : request.params) {
    text += fmt::format("{}{}={}", separator, name, value);
    separator = ',';
  }
  return text;
}

struct Tunable {
  json params = json::array();
  std::vector<std::string> fixed;
  std::map<std::string, std::string> defaults;
  size_t points = 1;
};

Tunable tunable_parameters(const KernelTuningRequest& request, const driver::Program& program,
                           const bench::Workload& workload) {
  Tunable out;
  for (const lang::ParamInfo& param : program.info.params) {
    const auto fix = [&](const char* why) {
      out.fixed.push_back(fmt::format("{} = {}: {}", param.name, lang::to_string(param.value), why));
    };
    if (request.params.contains(param.name)) {
      fix("given");
    } else if (std::holds_alternative<DType>(param.value)) {
      fix("an element type is part of the question");
    } else if (param.domain.size() < 2) {
      fix("the kernel lists no other value");
    } else if (changes_workload(program.source, program, param, workload)) {
      fix("another value computes something else");
    } else {
      json values = json::array();
      for (const lang::ParamValue& value : param.domain) values.push_back(value_json(value));
      out.params.push_back({{"name", param.name}, {"values", values}, {"default", value_json(param.value)}});
      out.defaults[param.name] = lang::to_string(param.value);
      out.points *= param.domain.size();
    }
  }
  return out;
}

}  // namespace

Result<KernelTuning> tune_kernel(const KernelTuningRequest& request) {
  driver::KernelRequest wanted{
      .path = request.path, .kernel = request.kernel, .params = request.params, .dims = request.dims};
  auto program = driver::load_program(wanted);
  if (!program) return std::unexpected(program.error().diagnostic);
  const auto& dims = program->configuration.dims;
  for (const std::string& dim : program->info.dims) {
    if (!dims.contains(dim)) {
      return fail(DiagnosticCode::E1801, fmt::format("dimension {} of kernel '{}' is open", dim, program->info.name),
                  fmt::format("give --dim {}=N", dim));
    }
  }
  auto workload = adapters::workload_of_kernel(program->info, dims);
  if (!workload) return std::unexpected(workload.error());
  Tunable tunable = tunable_parameters(request, *program, *workload);
  if (tunable.params.empty()) {
    return fail(DiagnosticCode::E1650, fmt::format("kernel '{}' has no parameter to tune", program->info.name),
                "declare one: param block_M = 64 in {32, 64, 128}");
  }
  wanted.dims = dims;
  wanted.kernel = program->info.name;
  auto pruner = std::make_shared<Pruner>(program->source, wanted);
  const bool plans = tunable.points <= kMostPlanned;
  // The defaults come first: of points that are one program, they are the one that stays.
  if (plans) (*pruner)(tunable.defaults, true);
  KernelTuning out{.candidate = spelling_of(request, program->info.name),
                   .workload = *std::move(workload),
                   .space = {{"params", std::move(tunable.params)}},
                   .prune = {},
                   .fixed = std::move(tunable.fixed)};
  out.prune = [pruner, plans, defaults = tunable.defaults](const tune::Config& config) -> std::optional<std::string> {
    const std::map<std::string, std::string> point = texts_of(config);
    // A space file may leave parameters out; they keep their defaults.
    std::map<std::string, std::string> whole = point;
    whole.insert(defaults.begin(), defaults.end());
    return (*pruner)(point, plans && whole != defaults);
  };
  return out;
}

}  // namespace tilewright::tools
