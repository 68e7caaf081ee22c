// `tilewright emit`: every stage of a kernel's way to machine code, as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

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

Result<ExitCode> emit(const EmitOptions& options) {
  static const std::vector<std::string> kStages = {"tile",   "planned", "vector", "llvm",  "asm",
                                                   "object", "layout",  "thread", "ptx",   "cubin",  "all"};
  if (std::find(kStages.begin(), kStages.end(), options.stage) == kStages.end()) {
    return fail(DiagnosticCode::E1804, fmt::format("unknown stage '{}'", options.stage),
                fmt::format("stages: {}", fmt::join(kStages, ", ")));
  }
  auto request = options.kernel.request();
  if (!request) return std::unexpected(request.error());
  const bool is_cuda = options.kernel.is_cuda();
  const auto gpu = options.kernel.gpu();
  if (is_cuda && !gpu)
    return fail(DiagnosticCode::E2502, fmt::format("unknown target '{}'", options.kernel.target),
                "architectures are cuda:sm_80, cuda:sm_86, cuda:sm_89, cuda:sm_90, cuda:sm_90a");
  auto cpu = is_cuda ? Result<tilewright::target::Cpu>(tilewright::target::host_cpu()) : options.kernel.cpu();
  if (!cpu) return std::unexpected(cpu.error());
  auto program = driver::load_program(*request);
  if (!program) {
    fmt::print(stderr, "{}", program.error().rendered);
    return exit_code(program.error().diagnostic);
  }
  auto compiled = is_cuda ? driver::compile_cuda(program->kernel, {.gpu = *gpu, .want_stages = true})
                          : driver::compile(program->kernel, {.cpu = *cpu, .want_stages = true});
  if (!compiled) {
    fmt::print(stderr, "{}", program->source.render(compiled.error()));
    return exit_code(compiled.error());
  }
  for (const driver::Stage& stage : compiled->stages) {
    const bool is_drawing = stage.name.ends_with(".svg");  // to files only
    const bool is_wanted = stage.name == options.stage || (is_drawing && options.stage == "layout");
    if ((options.stage != "all" && !is_wanted) || (is_drawing && options.out.empty())) continue;
    if (!options.out.empty()) {
      const std::string path =
          fmt::format("{}/{}.{}{}", options.out, program->info.name, stage.name,
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
  app.add_option("--stage", options->stage,
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
