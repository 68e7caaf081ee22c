// `tilewright emit`: every stage of a kernel's way to machine code, as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "driver/compile.h"
#include "driver/cuda_compile.h"
#include "tools/command.h"
#include "tools/compiler/kernel_options.h"

namespace tilewright::tools {
namespace {

struct EmitOptions {
  KernelOptions kernel;
  std::string stage = "all";
  std::string out;
};

const char* extension(const std::string& stage) {
  if (stage == "llvm") return ".ll";
  if (stage == "asm") return ".s";
  if (stage == "object") return ".o";
  if (stage == "ptx") return ".ptx";
  if (stage == "cubin") return ".cubin";
  if (stage == "layout") return ".txt";
  return ".ir";
}

Status write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (file.flush()) return {};
  return fail(DiagnosticCode::E3400, fmt::format("cannot write {}", path), "check that the folder exists and has room");
}

/// Every target has its own stages; a name of the other target's is refused with the list of this one's.
Status check_stage(const EmitOptions& options) {
  static const std::vector<std::string> kCpuStages = {"tile", "planned", "vector", "llvm", "asm", "object", "all"};
  static const std::vector<std::string> kCudaStages = {"tile", "layout", "thread", "ptx", "cubin", "all"};
  const bool is_cuda = options.kernel.is_cuda();
  const auto& stages = is_cuda ? kCudaStages : kCpuStages;
  if (std::ranges::count(stages, options.stage)) return {};
  const bool is_known = std::ranges::count(is_cuda ? kCpuStages : kCudaStages, options.stage);
  return fail(
      DiagnosticCode::E1804,
      is_known ? fmt::format("stage '{}' is not one of target {}", options.stage, options.kernel.target)
               : fmt::format("unknown stage '{}'", options.stage),
      fmt::format(
          "stages of {}: {}{}", options.kernel.target, fmt::join(stages, ", "),
          is_known ? fmt::format("; {} needs --target {}", options.stage, is_cuda ? "cpu" : "cuda:sm_90a") : ""));
}

Result<driver::Compilation> compile(const EmitOptions& options, const driver::Program& program) {
  if (options.kernel.is_cuda()) {
    const auto gpu = options.kernel.gpu();
    if (!gpu) return std::unexpected(gpu.error());
    const bool assembles = options.stage == "all" || options.stage == "cubin";
    return driver::compile_cuda(program.kernel, {.gpu = *gpu, .want_stages = true, .assembles = assembles});
  }
  const auto cpu = options.kernel.cpu();
  if (!cpu) return std::unexpected(cpu.error());
  return driver::compile(program.kernel, {.cpu = *cpu, .want_stages = true});
}

Result<ExitCode> emit(const EmitOptions& options) {
  if (Status stage = check_stage(options); !stage) return std::unexpected(stage.error());
  auto request = options.kernel.request();
  if (!request) return std::unexpected(request.error());
  auto program = driver::load_program(*request);
  if (!program) {
    fmt::print(stderr, "{}", program.error().rendered);
    return exit_code(program.error().diagnostic);
  }
  auto compiled = compile(options, *program);
  if (!compiled) {
    fmt::print(stderr, "{}", program->source.render(compiled.error()));
    return exit_code(compiled.error());
  }
  std::error_code error;
  if (!options.out.empty()) std::filesystem::create_directories(options.out, error);
  if (options.stage == "cubin" && compiled->artefact.kind != runtime::CodeKind::Cubin) {
    for (const auto& fact : compiled->facts)
      if (fact.what == "machine code")
        return fail(DiagnosticCode::E1804, "there is no cubin to show: machine code is made " + fact.why,
                    "emit --stage ptx shows what the driver assembles");
  }
  for (const driver::Stage& stage : compiled->stages) {
    const bool is_drawing = stage.name.ends_with(".svg");  // to files only
    const bool is_wanted = stage.name == options.stage || (is_drawing && options.stage == "layout");
    if ((options.stage != "all" && !is_wanted) || (is_drawing && options.out.empty())) continue;
    if (!options.out.empty()) {
      const std::string path = fmt::format("{}/{}.{}{}", options.out, program->info.name, stage.name,
                                           is_drawing ? "" : extension(stage.name));
      if (Status written = write_file(path, stage.content); !written) return std::unexpected(written.error());
      fmt::print("{}\n", path);
    } else if (stage.name == "object" || stage.name == "cubin") {
      if (options.stage == stage.name) std::fwrite(stage.content.data(), 1, stage.content.size(), stdout);
    } else {
      if (options.stage == "all") fmt::print("# ---- {} ----\n", stage.name);
      fmt::print("{}\n", stage.content);
    }
  }
  return ExitCode::Ok;
}

}  // namespace

Run add_emit(CLI::App& app, Session&) {
  auto options = std::make_shared<EmitOptions>();
  options->kernel.add_to(app);
  app.add_option(
         "--stage", options->stage,
         "CPU: tile, planned, vector, llvm, asm, object; CUDA: tile, layout (drawings with --out), thread, ptx, "
         "cubin; or all")
      ->capture_default_str();
  app.add_option("--out", options->out, "Write each stage to a file in this folder instead of the screen");
  app.footer(
      "Examples:\n"
      "  tilewright emit kernels/matmul.tile --stage tile\n"
      "  tilewright emit kernels/softmax.tile --stage asm --target cpu:x86-64-v3\n"
      "  tilewright emit kernels/softmax.tile --stage object --out /tmp\n"
      "  tilewright emit kernels/matmul_relu.tile --target cuda:sm_90a --param T=bf16 --stage ptx");
  return [options] { return emit(*options); };
}

}  // namespace tilewright::tools
