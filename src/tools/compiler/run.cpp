// `tilewright run`: compile a kernel and run it once on files or random data; with --check, prove it against the
// oracle.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cache/kernel_cache.h"
#include "analysis/independence.h"
#include "driver/check.h"
#include "driver/compile.h"
#include "driver/cuda_call.h"
#include "driver/cuda_compile.h"
#include "tools/command.h"
#include "tools/compiler/kernel_options.h"

namespace tilewright::tools {
namespace {

using nlohmann::json;

struct RunOptions {
  KernelOptions kernel;
  std::vector<std::string> in, out, expect;
  uint64_t seed = 1;
  int threads = 0;
  bool check = false, explain = false, as_json = false;
};

/// Everything one run found out.
struct RunReport {
  const driver::Program& program;
  driver::Compilation compilation;
  driver::Arrays arrays;
  double run_ms = 0;
  std::optional<driver::CheckReport> check;
  std::vector<driver::OutputCheck> expected;

  bool passed() const {
    if (check && !check->passed()) return false;
    for (const driver::OutputCheck& output : expected) {
      if (output.mismatches > 0) return false;
    }
    return true;
  }
};

/// Shapes of given inputs settle the dimensions that their axes name.
void bind_from_inputs(const lang::KernelInfo& info, const std::map<std::string, HostTensor>& given,
                      std::map<std::string, int64_t>& dims) {
  for (const lang::ArgumentInfo& argument : info.arguments) {
    const auto tensor = given.find(argument.name);
    if (tensor == given.end()) continue;
    for (size_t i = 0; i < std::min(argument.shape.size(), tensor->second.shape.size()); ++i) {
      if (std::find(info.dims.begin(), info.dims.end(), argument.shape[i]) != info.dims.end())
        dims.emplace(argument.shape[i], tensor->second.shape[i]);
    }
  }
}

Result<std::map<std::string, HostTensor>> read_inputs(const std::vector<std::string>& texts,
                                                      std::map<std::string, double>& scalars) {
  auto named = parse_assignments(texts, "--in");
  if (!named) return std::unexpected(named.error());
  std::map<std::string, HostTensor> out;
  for (const auto& [name, spec] : *named) {
    char* end = nullptr;
    const double number = std::strtod(spec.c_str(), &end);
    if (!spec.empty() && *end == '\0') {
      scalars[name] = number;
      continue;
    }
    auto tensor = read_tensor(spec);
    if (!tensor) return std::unexpected(tensor.error());
    out.emplace(name, std::move(*tensor));
  }
  return out;
}

std::string describe_values(const HostTensor& tensor) {
  double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0;
  int64_t nan = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const double v = driver::element(tensor, i);
    if (std::isnan(v)) {
      ++nan;
      continue;
    }
    low = std::min(low, v), high = std::max(high, v), sum += v;
  }
  const int64_t n = tensor.numel() - nan;
  if (tensor.numel() == 0) return "empty";
  std::string text =
      n ? fmt::format("min {:.5g}  mean {:.5g}  max {:.5g}", low, sum / static_cast<double>(n), high) : "";
  if (nan) text += fmt::format("  {} NaN", nan);
  return text;
}

void print_check(const RunReport& report) {
  for (const Diagnostic& finding : report.check->findings) fmt::print("{}", report.program.source.render(finding));
  if (!report.check->printed.empty()) fmt::print("{}", report.check->printed);
  if (report.check->inconclusive)
    fmt::print("check: inconclusive: an address or a loop depends on rounding; compare with --expect\n");
  for (const driver::OutputCheck& o : report.check->outputs) {
    fmt::print(
        "check: {:<8} {} of {} elements within the bound of any correct implementation; largest error {:.3g} ({:.2g} "
        "of its bound){}\n",
        o.argument, o.elements - o.mismatches, o.elements, o.worst_error, o.worst_ratio,
        o.tainted ? fmt::format("; {} undecidable", o.tainted) : "");
    if (o.mismatches) fmt::print("  WRONG: {}\n", o.first_mismatch);
  }
  if (!report.program.info.references.empty()) {
    fmt::print("check: against the interpreter of this program; its `reference` line is compared by `tilewright bench`\n");
  }
  fmt::print("check: {}\n", report.check->passed() ? "passed" : "FAILED");
}

void print_report(const RunReport& report, const RunOptions& options) {
  const driver::CompileTimes& t = report.compilation.times;
  fmt::print("kernel {} on {}\n", report.program.info.name, report.compilation.artefact.recipe.target);
  std::vector<std::string> params;
  for (const lang::ParamInfo& p : report.program.info.params)
    params.push_back(fmt::format("{}={}", p.name, lang::to_string(p.value)));
  if (!params.empty()) fmt::print("  parameters  {}\n", fmt::join(params, " "));
  size_t position = 0;
  for (const ir::TensorArgument& tensor : report.program.kernel.tensors) {
    if (tensor.direction == ir::Direction::Workspace) continue;
    const HostTensor& array = report.arrays.tensors[position++];
    static constexpr const char* kDirections[] = {"in", "out", "inout", ""};
    fmt::print("  {:<6}{:<10} {:<24} {}\n", kDirections[static_cast<int>(tensor.direction)], tensor.buffer->name,
               to_string(array.dtype, array.shape), describe_values(array));
  }
  if (report.compilation.is_from_cache) {
    fmt::print("  loaded from the cache in {:.2f} ms\n", t.cache_ms);
  } else {
    fmt::print(
        "  compiled in {:.1f} ms (plan {:.1f}, LLVM IR or PTX {:.1f}, optimise {:.1f}, emit {:.1f}; opening LLVM "
        "{:.1f} "
        "apart)\n",
        t.total_ms(), t.plan_ms, t.lower_ms, t.optimise_ms, t.emit_ms, t.open_module_ms);
  }
  fmt::print("  first call {:.3f} ms (one call is not a measurement: use `tilewright bench`)\n", report.run_ms);
  if (options.explain) {
    fmt::print("\nwhat was chosen, and why\n");
    for (const plan::cpu::Fact& fact : report.compilation.facts) {
      fmt::print("  {:<26} {}{}\n", fact.what, fact.why,
                 fact.location.is_known() ? fmt::format("  ({})", to_string(fact.location)) : "");
    }
  }
  if (report.check) {
    print_check(report);
  } else {
    for (const Diagnostic& note : analysis::independence_notes(report.program.kernel)) {
      fmt::print("{}", report.program.source.render(note));
    }
  }
  for (const driver::OutputCheck& o : report.expected) {
    if (o.mismatches)
      fmt::print("expect: WRONG: {} ({} of {} elements differ)\n", o.first_mismatch, o.mismatches, o.elements);
    else
      fmt::print("expect: {} matches, largest error {:.3g}\n", o.argument, o.worst_error);
  }
}

json to_json(const driver::OutputCheck& o) {
  return {{"argument", o.argument},
          {"elements", o.elements},
          {"mismatches", o.mismatches},
          {"undecidable", o.tainted},
          {"worst_error", o.worst_error},
          {"worst_ratio", o.worst_ratio},
          {"first_mismatch", o.first_mismatch}};
}

void print_json(const RunReport& report) {
  const driver::CompileTimes& t = report.compilation.times;
  json out = {{"kernel", report.program.info.name},
              {"target", report.compilation.artefact.recipe.target},
              {"from_cache", report.compilation.is_from_cache},
              {"compile_ms", t.total_ms()},
              {"first_call_ms", report.run_ms},
              {"passed", report.passed()}};
  for (const lang::ParamInfo& p : report.program.info.params) out["parameters"][p.name] = lang::to_string(p.value);
  for (const plan::cpu::Fact& fact : report.compilation.facts)
    out["explain"].push_back({{"what", fact.what}, {"why", fact.why}, {"where", to_string(fact.location)}});
  if (report.check) {
    for (const Diagnostic& f : report.check->findings)
      out["findings"].push_back(
          {{"code", code_text(f.code)}, {"where", to_string(f.location)}, {"message", f.message}});
    for (const driver::OutputCheck& o : report.check->outputs) out["check"].push_back(to_json(o));
    out["inconclusive"] = report.check->inconclusive;
  }
  for (const driver::OutputCheck& o : report.expected) out["expect"].push_back(to_json(o));
  fmt::print("{}\n", out.dump(2));
}

int tensor_position(const ir::Kernel& kernel, const std::string& name) {
  int position = 0;
  for (const ir::TensorArgument& tensor : kernel.tensors) {
    if (tensor.direction == ir::Direction::Workspace) continue;
    if (tensor.buffer->name == name) return position;
    ++position;
  }
  return -1;
}

Result<int> find_tensor(const ir::Kernel& kernel, const std::string& name, const char* option) {
  const int position = tensor_position(kernel, name);
  if (position >= 0) return position;
  std::vector<std::string> names;
  for (const ir::TensorArgument& tensor : kernel.tensors) names.push_back(tensor.buffer->name);
  return fail(DiagnosticCode::E1804, fmt::format("{}: the kernel has no argument '{}'", option, name),
              fmt::format("its tensors are: {}", fmt::join(names, ", ")));
}

Status compare_expected(const RunOptions& options, RunReport& report) {
  auto named = parse_assignments(options.expect, "--expect");
  if (!named) return std::unexpected(named.error());
  for (const auto& [name, spec] : *named) {
    auto at = find_tensor(report.program.kernel, name, "--expect");
    if (!at) return std::unexpected(at.error());
    auto want = read_tensor(spec);
    if (!want) return std::unexpected(want.error());
    const HostTensor& got = report.arrays.tensors[static_cast<size_t>(*at)];
    if (want->shape != got.shape) {
      return fail(DiagnosticCode::E1802,
                  fmt::format("--expect {}: {} is {}, the kernel wrote {}", name, spec,
                              to_string(want->dtype, want->shape), to_string(got.dtype, got.shape)),
                  "compare arrays of one shape");
    }
    report.expected.push_back(driver::compare_with(name, got, *want));
  }
  return {};
}

Status save_outputs(const RunOptions& options, const RunReport& report) {
  auto named = parse_assignments(options.out, "--out");
  if (!named) return std::unexpected(named.error());
  for (const auto& [name, path] : *named) {
    auto at = find_tensor(report.program.kernel, name, "--out");
    if (!at) return std::unexpected(at.error());
    if (Status written = write_npy(path, report.arrays.tensors[static_cast<size_t>(*at)]); !written) return written;
  }
  return {};
}

Status check_input_names(const ir::Kernel& kernel, const driver::ArrayOptions& arrays) {
  for (const auto& [name, tensor] : arrays.given) {
    if (auto at = find_tensor(kernel, name, "--in"); !at) return std::unexpected(at.error());
  }
  for (const auto& [name, value] : arrays.scalars) {
    const bool known = std::any_of(kernel.scalars.begin(), kernel.scalars.end(),
                                   [&](const ir::ScalarArgument& s) { return s.value->name == name; });
    if (!known)
      return fail(DiagnosticCode::E1804, fmt::format("--in: the kernel has no scalar '{}'", name),
                  "tensors are given as files: --in A=a.npy");
  }
  return {};
}

Result<driver::Program> prepare(const RunOptions& options, driver::ArrayOptions& arrays, ExitCode& exit) {
  auto request = options.kernel.request();
  if (!request) return std::unexpected(request.error());
  auto given = read_inputs(options.in, arrays.scalars);
  if (!given) return std::unexpected(given.error());
  arrays.given = std::move(*given);
  arrays.seed = options.seed;
  auto first = driver::load_program(*request);
  if (first && !arrays.given.empty()) {
    bind_from_inputs(first->info, arrays.given, request->dims);
    first = driver::load_program(*request);
  }
  if (!first) {
    fmt::print(stderr, "{}", first.error().rendered);
    exit = exit_code(first.error().diagnostic);
    return std::unexpected(first.error().diagnostic);
  }
  arrays.dims = first->configuration.dims;
  for (const auto& [name, size] : request->dims) arrays.dims[name] = size;
  return std::move(*first);
}

template <typename F>
Status timed(double& ms, F&& call) {
  const auto start = std::chrono::steady_clock::now();
  Status status = call();
  ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return status;
}

Result<driver::Compilation> run_on_cpu(const RunOptions& options, const driver::Program& program,
                                       driver::Arrays& arrays, double& ms) {
  auto cpu = options.kernel.cpu();
  if (!cpu) return std::unexpected(cpu.error());
  cache::KernelCache cache;
  // Why something was chosen is known only while it is compiled.
  auto compilation = driver::compile(program.kernel, {.cpu = *cpu, .cache = options.explain ? nullptr : &cache});
  for (const Diagnostic& notice : cache.notices()) fmt::print(stderr, "{}", render(notice));
  if (!compilation) return compilation;
  const auto device = runtime::open_cpu({.threads = options.threads});
  auto loaded = driver::LoadedKernel::load(*device, compilation->artefact);
  if (!loaded) return std::unexpected(loaded.error());
  if (Status ran = timed(ms, [&] { return loaded->run(program.kernel, arrays); }); !ran)
    return std::unexpected(ran.error());
  return compilation;
}

Result<driver::Compilation> run_on_cuda(const RunOptions& options, const driver::Program& program,
                                        driver::Arrays& arrays, double& ms) {
  const std::string& target = options.kernel.target;
  const bool names_device = target.size() == 6 && target.starts_with("cuda:") && std::isdigit(target[5]);
  if (target != "cuda" && !names_device && !options.kernel.gpu()) {
    return fail(DiagnosticCode::E2502, fmt::format("unknown target '{}'", target),
                "targets are cuda, cuda:0 (a device of this machine), cuda:sm_80, cuda:sm_90a");
  }
  auto device = cuda::Device::open(names_device ? target[5] - '0' : 0);
  if (!device) return std::unexpected(device.error());
  auto gpu = driver::gpu_facts(*device);
  if (!gpu) return std::unexpected(gpu.error());
  if (const auto named = options.kernel.gpu()) *gpu = *named;
  auto compilation =
      driver::compile_cuda(program.kernel, {.gpu = *gpu, .plan = {.aligned = driver::is_aligned_class(arrays)}});
  if (!compilation) return compilation;
  auto loaded = driver::CudaKernel::load(*device, compilation->artefact);
  if (!loaded) return std::unexpected(loaded.error());
  if (Status ran = timed(ms, [&] { return loaded->run(program.kernel, arrays); }); !ran)
    return std::unexpected(ran.error());
  return compilation;
}

Result<ExitCode> run(const RunOptions& options) {
  driver::ArrayOptions array_options;
  ExitCode exit = ExitCode::Ok;
  auto program = prepare(options, array_options, exit);
  if (!program) return exit != ExitCode::Ok ? Result<ExitCode>(exit) : std::unexpected(program.error());
  const auto in_source = [&](const Diagnostic& diagnostic) -> Result<ExitCode> {
    fmt::print(stderr, "{}", program->source.render(diagnostic));
    return exit_code(diagnostic);
  };
  if (Status known = check_input_names(program->kernel, array_options); !known) return std::unexpected(known.error());
  auto arrays = driver::make_arrays(program->kernel, array_options);
  if (!arrays) return in_source(arrays.error());
  const driver::Arrays inputs = options.check ? *arrays : driver::Arrays{};
  double run_ms = 0;
  auto compilation = options.kernel.is_cuda() ? run_on_cuda(options, *program, *arrays, run_ms)
                                              : run_on_cpu(options, *program, *arrays, run_ms);
  if (!compilation) return in_source(compilation.error());
  RunReport report{.program = *program, .compilation = std::move(*compilation), .arrays = std::move(*arrays)};
  report.run_ms = run_ms;
  if (options.check) {
    auto check = driver::check_results(program->kernel, inputs, report.arrays);
    if (!check) return in_source(check.error());
    report.check = std::move(*check);
  }
  if (Status compared = compare_expected(options, report); !compared) return std::unexpected(compared.error());
  if (Status saved = save_outputs(options, report); !saved) return std::unexpected(saved.error());
  if (options.as_json)
    print_json(report);
  else
    print_report(report, options);
  return report.passed() ? ExitCode::Ok : ExitCode::Incorrect;
}

}  // namespace

Run add_run(CLI::App& app, Session&) {
  auto options = std::make_shared<RunOptions>();
  options->kernel.add_to(app);
  app.add_option("--in", options->in,
                 "Inputs: A=a.npy, A=w.safetensors:name, or a scalar: scale=0.125 (others: seeded random)");
  app.add_option("--out", options->out, "Save outputs: C=c.npy");
  app.add_option("--expect", options->expect, "Compare outputs with files: C=c.npy");
  app.add_option("--seed", options->seed, "Seed of the random inputs")->capture_default_str();
  app.add_option("--threads", options->threads, "Threads (0: all)")->capture_default_str();
  app.add_flag("--check", options->check,
               "Check the program (races, bounds, uninitialised reads) and the results against the interpreter");
  app.add_flag("--explain", options->explain, "Say what the compiler chose and why");
  app.add_flag("--json", options->as_json, "Print one JSON object");
  app.footer(
      "Examples:\n"
      "  tilewright run kernels/matmul.tile --check\n"
      "  tilewright run kernels/softmax.tile --dim M=1000,N=777 --explain\n"
      "  tilewright run kernels/matmul_relu.tile --target cuda --param T=bf16 --check\n"
      "  tilewright run my.tile --in A=a.npy,B=b.npy --out C=c.npy --expect C=want.npy\n"
      "Exit code 0: ran (and passed) · 2: the input is wrong · 3: a wrong result or a finding of --check");
  return [options] { return run(*options); };
}

}  // namespace tilewright::tools
