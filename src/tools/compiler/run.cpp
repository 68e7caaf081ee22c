// `tilewright run`: compile a kernel and run it once on files or random data; with --check, prove it against the
// oracle.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <span>

#include "adapters/tile/kernel_workload.h"
#include "base/print_text.h"
#include "cache/kernel_cache.h"
#include "driver/compile.h"
#include "driver/cuda_call.h"
#include "driver/cuda_compile.h"
#include "lang/foreign.h"
#include "tools/command.h"
#include "tools/compiler/kernel_options.h"
#include "tools/compiler/run_report.h"
#include "tools/saved_winner.h"

namespace tilewright::tools {
namespace {

struct RunOptions {
  KernelOptions kernel;
  std::vector<std::string> in, out, expect;
  std::string best;  ///< best.json: pinned dispatch
  uint64_t seed = 1;
  int threads = 0;
  bool check = false, explain = false, as_json = false;
};

/// What `--in` gives: arrays, scalars, and optional tensors that are left out (`bias=none`).
struct Inputs {
  std::map<std::string, HostTensor> arrays;
  std::map<std::string, std::string> scalars;  ///< numbers as written
  std::set<std::string> absent;
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

/// A scalar's value, as against the name of a file.
bool is_number(const std::string& text) {
  char* end = nullptr;
  static_cast<void>(std::strtod(text.c_str(), &end));
  return (!text.empty() && *end == '\0') || text == "true" || text == "false";
}

Result<Inputs> read_inputs(const std::vector<std::string>& texts) {
  auto named = parse_assignments(texts, "--in");
  if (!named) return std::unexpected(named.error());
  Inputs out;
  for (const auto& [name, spec] : *named) {
    if (is_number(spec)) {
      out.scalars[name] = spec;
    } else if (spec == "none") {
      out.absent.insert(name);
    } else {
      auto tensor = read_tensor(spec);
      if (!tensor) return std::unexpected(tensor.error());
      out.arrays.emplace(name, std::move(*tensor));
    }
  }
  return out;
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

/// Before any file is read: a name no argument has is the user's slip, not the file's.
Status check_input_names(const lang::KernelInfo& info, const std::vector<std::string>& texts) {
  auto named = parse_assignments(texts, "--in");
  if (!named) return std::unexpected(named.error());
  std::vector<std::string> known;
  for (const lang::ArgumentInfo& a : info.arguments) {
    if (a.kind != lang::ArgumentKind::Workspace) known.push_back(a.name);
  }
  for (const auto& [name, spec] : *named) {
    const auto found = std::ranges::find(info.arguments, name, &lang::ArgumentInfo::name);
    if (found == info.arguments.end()) {
      const std::string near = lang::closest(name, known);
      return fail(
          DiagnosticCode::E1804, fmt::format("--in: the kernel has no argument '{}'", name),
          near.empty() ? fmt::format("it takes: {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", near));
    }
    if (found->is_tensor == is_number(spec)) {
      return fail(DiagnosticCode::E1804,
                  fmt::format("--in: {} is a {}, '{}' is not", name, found->is_tensor ? "tensor" : "scalar", spec),
                  found->is_tensor ? "tensors are given as files: --in A=a.npy, or A=w.safetensors:name"
                                   : "scalars are given as numbers: --in scale=0.125");
    }
    if (spec == "none" && !found->optional)
      return fail(DiagnosticCode::E1804, fmt::format("--in: {} is not optional", name), "give a file, or leave it out");
  }
  return {};
}

/// Pinned dispatch: the configuration a verified record has for these sizes joins the parameters nobody gave; else the
/// kernel's own defaults serve. Says which, and from which record.
void apply_best(const RunOptions& options, const Session& session, const driver::Program& program,
                driver::KernelRequest& request) {
  const auto workload = adapters::workload_of_kernel(program.info, program.configuration.dims);
  if (!workload) return fmt::print(stderr, "dispatch: the kernel's defaults serve: {}\n", workload.error().message);
  const dispatch::Pinned pinned = open_pinned(options.best, session.kinds, {.kernel_file = options.kernel.file});
  const dispatch::Choice choice = pinned.choose(dims_of(*workload));
  if (!choice.bucket) return fmt::print(stderr, "dispatch: the kernel's defaults serve: {}\n", choice.why);
  for (const auto& [name, value] : choice.bucket->config.values()) request.params.emplace(name, tune::to_string(value));
  if (!options.as_json) fmt::print("dispatch\n{}", dispatch::explain(pinned, options.best, dims_of(*workload)));
}

Result<driver::Program> prepare(const RunOptions& options, const Session& session, driver::ArrayOptions& arrays,
                                ExitCode& exit) {
  auto request = options.kernel.request();
  if (!request) return std::unexpected(request.error());
  const auto refused = [&](const driver::ProgramError& error) {
    fmt::print(stderr, "{}", error.rendered);
    exit = exit_code(error.diagnostic);
    return std::unexpected(error.diagnostic);
  };
  if (!options.in.empty()) {
    const auto info = driver::describe_program(*request);
    if (!info) return refused(info.error());
    if (Status known = check_input_names(*info, options.in); !known) return std::unexpected(known.error());
    auto given = read_inputs(options.in);
    if (!given) return std::unexpected(given.error());
    bind_from_inputs(*info, given->arrays, request->dims);
    arrays.given = std::move(given->arrays);
    arrays.scalars = std::move(given->scalars);
    request->absent.merge(given->absent);
  }
  auto made = driver::load_program(*request);
  if (made && !options.best.empty()) {
    apply_best(options, session, *made, *request);
    made = driver::load_program(*request);
  }
  if (!made) return refused(made.error());
  arrays.seed = options.seed;
  arrays.dims = made->configuration.dims;
  for (const auto& [name, size] : request->dims) arrays.dims[name] = size;
  return std::move(*made);
}

template <typename F>
Status timed(double& ms, F&& call) {
  const auto start = std::chrono::steady_clock::now();
  Status status = call();
  ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return status;
}

/// Lines of `print`, from any worker, in the order they come; a runaway kernel does not fill the memory.
struct Printer {
  static constexpr size_t kMost = 1 << 20;
  std::mutex mutex;
  std::string lines;

  static void take(void* self, const char* text, const char*, const int64_t* values, int32_t count) {
    auto& printer = *static_cast<Printer*>(self);
    const std::string line = fill_print_text(text, std::span(values, static_cast<size_t>(count)));
    const std::lock_guard lock(printer.mutex);
    if (printer.lines.size() < kMost) printer.lines += line + "\n";
  }
};

Result<driver::Compilation> run_on_cpu(const RunOptions& options, const driver::Program& program,
                                       driver::Arrays& arrays, double& ms, std::string& printed) {
  auto cpu = options.kernel.cpu();
  if (!cpu) return std::unexpected(cpu.error());
  cache::KernelCache cache({.stores_behind = true});
  // Why something was chosen is known only while it is compiled.
  auto compilation = driver::compile(program.kernel, {.cpu = *cpu, .cache = options.explain ? nullptr : &cache});
  const auto say_notices = [&] {
    for (const Diagnostic& notice : cache.notices()) fmt::print(stderr, "{}", render(notice));
  };
  if (!compilation) return say_notices(), compilation;
  Printer printer;
  const auto device =
      runtime::open_cpu({.threads = options.threads, .print = Printer::take, .print_context = &printer});
  auto loaded = driver::LoadedKernel::load(*device, compilation->artefact);
  if (!loaded) return std::unexpected(loaded.error());
  const Status ran = timed(ms, [&] { return loaded->run(program.kernel, arrays); });
  say_notices();  // after the call: until then the entry may be on its way to the disk
  printed = std::move(printer.lines);
  if (!ran) return std::unexpected(ran.error());
  return compilation;
}

Result<driver::Compilation> run_on_cuda(const RunOptions& options, const driver::Program& program,
                                        driver::Arrays& arrays, double& ms) {
  const std::optional<int> number = options.kernel.device_number();
  const auto named = number ? std::nullopt : std::optional(options.kernel.gpu());
  if (named && !*named) return std::unexpected(named->error());
  auto device = cuda::Device::open(number.value_or(0));
  if (!device) return std::unexpected(device.error());
  const auto gpu = named ? *named : driver::gpu_facts(*device);
  if (!gpu) return std::unexpected(gpu.error());
  cache::KernelCache cache({.stores_behind = true});
  auto compilation = driver::compile_cuda(program.kernel, {.gpu = *gpu,
                                                           .plan = {.wide_indices = driver::is_large_class(arrays),
                                                                    .aligned = driver::is_aligned_class(arrays)},
                                                           .for_device = true,
                                                           .cache = options.explain ? nullptr : &cache});
  if (!compilation) return compilation;
  auto loaded = driver::CudaKernel::load(*device, compilation->artefact);
  if (!loaded) return std::unexpected(loaded.error());
  if (Status ran = timed(ms, [&] { return loaded->run(program.kernel, arrays); }); !ran)
    return std::unexpected(ran.error());
  return compilation;
}

/// A requirement that failed at the call is shown where it is written.
Diagnostic placed(Diagnostic d, const ir::Kernel& kernel) {
  if (d.code != DiagnosticCode::E1410 || d.location.is_known()) return d;
  for (const ir::Requirement& r : kernel.requirements) {
    if (d.message.find(r.text) != std::string::npos) d.location = r.location;
  }
  return d;
}

Status check_run(const driver::Program& program, const driver::Arrays& inputs, RunReport& report) {
  auto check = driver::check_results(program.kernel, inputs, report.arrays);
  if (!check) return std::unexpected(check.error());
  report.check = std::move(*check);
  auto reference = compare_with_reference(program, inputs, report.arrays, *report.check);
  if (!reference) return std::unexpected(reference.error());
  report.reference = std::move(*reference);
  return {};
}

bool has_while(const ir::Kernel& kernel) {
  bool found = false;
  ir::for_each_op(*kernel.body, [&](const ir::Op& op) { found |= op.kind == ir::OpKind::While; });
  return found;
}

/// A failed assertion is a wrong result; with `--check` the interpreter says in which iteration.
ExitCode report_assertion(const driver::Program& program, const driver::Arrays* inputs, const Diagnostic& failure) {
  fmt::print(stderr, "{}", program.source.render(failure));
  if (!inputs) return ExitCode::Incorrect;
  if (const auto check = driver::check_results(program.kernel, *inputs, *inputs)) {
    for (const Diagnostic& finding : check->findings) fmt::print("{}", program.source.render(finding));
  }
  return ExitCode::Incorrect;
}

Result<ExitCode> run(const RunOptions& options, const Session& session) {
  driver::ArrayOptions array_options;
  ExitCode exit = ExitCode::Ok;
  auto program = prepare(options, session, array_options, exit);
  if (!program) return exit != ExitCode::Ok ? Result<ExitCode>(exit) : std::unexpected(program.error());
  const auto in_source = [&](const Diagnostic& diagnostic) -> Result<ExitCode> {
    fmt::print(stderr, "{}", program->source.render(placed(diagnostic, program->kernel)));
    return exit_code(diagnostic);
  };
  if (Status known = check_reference_words(*program); !known) return in_source(known.error());
  auto arrays = driver::make_arrays(program->kernel, array_options);
  if (!arrays) return in_source(arrays.error());
  const driver::Arrays inputs = options.check ? *arrays : driver::Arrays{};
  if (options.check &&
      has_while(program->kernel)) {  // the interpreter stops a loop without end, compiled code does not
    if (const auto ends = driver::check_results(program->kernel, inputs, inputs); !ends) return in_source(ends.error());
  }
  double run_ms = 0;
  std::string printed;
  auto compilation = options.kernel.is_cuda() ? run_on_cuda(options, *program, *arrays, run_ms)
                                              : run_on_cpu(options, *program, *arrays, run_ms, printed);
  if (!compilation) {
    fmt::print("{}", printed);
    if (compilation.error().code != DiagnosticCode::E1420) return in_source(compilation.error());
    return report_assertion(*program, options.check ? &inputs : nullptr, compilation.error());
  }
  RunReport report{.program = *program, .compilation = std::move(*compilation), .arrays = std::move(*arrays)};
  report.run_ms = run_ms;
  report.printed = std::move(printed);
  if (options.check) {
    if (Status checked = check_run(*program, inputs, report); !checked) return in_source(checked.error());
  }
  if (Status compared = compare_expected(options, report); !compared) return std::unexpected(compared.error());
  if (Status saved = save_outputs(options, report); !saved) return std::unexpected(saved.error());
  if (options.as_json)
    print_json(report);
  else
    print_report(report, options.explain);
  if (report.passed() && report.undecided()) return ExitCode::Insufficient;
  return report.passed() ? ExitCode::Ok : ExitCode::Incorrect;
}

}  // namespace

Run add_run(CLI::App& app, Session& session) {
  auto options = std::make_shared<RunOptions>();
  options->kernel.add_to(app);
  app.add_option("--in", options->in,
                 "Inputs: A=a.npy, A=w.safetensors:name, a scalar: scale=0.125, an optional tensor left out: bias=none "
                 "(others: seeded random)");
  app.add_option("--out", options->out, "Save outputs: C=c.npy");
  app.add_option("--expect", options->expect, "Compare outputs with files: C=c.npy");
  app.add_option("--best", options->best, "Saved winners of `tilewright tune`: the verified one for these sizes serves")
      ->type_name("FILE");
  app.add_option("--seed", options->seed, "Seed of the random inputs")->capture_default_str();
  app.add_option("--threads", options->threads, "Threads (0: all)")->check(CLI::Range(0, 4096))->capture_default_str();
  app.add_flag(
      "--check", options->check,
      "Check the program (races, bounds, uninitialised reads), and the results against the interpreter and the "
      "kernel's `reference`");
  app.add_flag("--explain", options->explain, "Say what the compiler chose and why");
  app.add_flag("--json", options->as_json, "Print one JSON object");
  app.footer(
      "Examples:\n"
      "  tilewright run kernels/matmul.tile --check\n"
      "  tilewright run kernels/softmax.tile --dim M=1000,N=777 --explain\n"
      "  tilewright run kernels/matmul_relu.tile --target cuda --param T=bf16 --check\n"
      "  tilewright run my.tile --in A=a.npy,B=b.npy --out C=c.npy --expect C=want.npy\n"
      "Exit code 0: ran (and passed) · 2: the input is wrong · 3: a wrong result or a finding of --check · 6: --check "
      "could "
      "compare nothing");
  return [options, &session] { return run(*options, session); };
}

}  // namespace tilewright::tools
