// `tilewright build`: a kernel compiled ahead of time, to link or to load where no compiler is.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "aot/kernel_header.h"
#include "driver/compile.h"
#include "driver/cuda_compile.h"
#include "tools/command.h"
#include "tools/compiler/kernel_options.h"

#include <nlohmann/json.hpp>

namespace tilewright::tools {
namespace {

struct BuildOptions {
  KernelOptions kernel;
  std::string out = ".";
  bool specialise = false;
  bool json = false;
};

Status write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (file.flush()) return {};
  return fail(DiagnosticCode::E3400, fmt::format("cannot write {}", path), "check that the folder exists and has room");
}

/// <kernel>.o and <kernel>.h to link, <kernel>.twk to load; of CUDA the machine code or the PTX it is made of, and the
/// .twk.
Result<std::vector<std::string>> write_kernel(const BuildOptions& options, const runtime::Artefact& artefact) {
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  const std::string base = options.out + "/" + aot::c_name(artefact.recipe.kernel);
  const std::string source = std::filesystem::path(options.kernel.file).filename();
  std::vector<std::pair<const char*, std::string>> files = {{".twk", runtime::serialise(artefact)}};
  if (artefact.kind == runtime::CodeKind::ElfObject) {
    files.insert(files.begin(), {{".o", artefact.code}, {".h", aot::kernel_header(artefact.recipe, source)}});
  } else {
    files.insert(files.begin(), {artefact.kind == runtime::CodeKind::Cubin ? ".cubin" : ".ptx", artefact.code});
  }
  std::vector<std::string> written;
  for (const auto& [extension, content] : files) {
    if (Status status = write_file(base + extension, content); !status) return std::unexpected(status.error());
    written.push_back(base + extension);
  }
  return written;
}

Result<driver::Compilation> compile(const BuildOptions& options, const driver::KernelRequest& request,
                                    const ir::Kernel& kernel) {
  if (options.kernel.is_cuda()) {
    const auto gpu = options.kernel.gpu();
    if (!gpu) return std::unexpected(gpu.error());
    const bool is_large =
        std::ranges::any_of(request.dims, [](const auto& dim) { return dim.second > plan::gpu::kLargestExtent; });
    return driver::compile_cuda(kernel, {.gpu = *gpu, .plan = {.wide_indices = is_large}, .for_device = true});
  }
  auto cpu = options.kernel.cpu();
  if (!cpu) return std::unexpected(cpu.error());
  return driver::compile(kernel, {.cpu = *cpu});
}

Result<ExitCode> build(const BuildOptions& options) {
  auto request = options.kernel.request();
  if (!request) return std::unexpected(request.error());
  request->specialise = options.specialise;
  auto program = driver::load_program(*request);
  if (!program) {
    fmt::print(stderr, "{}", program.error().rendered);
    return exit_code(program.error().diagnostic);
  }
  auto compiled = compile(options, *request, program->kernel);
  if (!compiled) {
    fmt::print(stderr, "{}", program->source.render(compiled.error()));
    return exit_code(compiled.error());
  }
  const auto written = write_kernel(options, compiled->artefact);
  if (!written) return std::unexpected(written.error());
  if (options.json) {
    const nlohmann::json out = {{"kernel", compiled->artefact.recipe.kernel},
                                {"target", compiled->artefact.recipe.target},
                                {"class", compiled->artefact.recipe.description},
                                {"files", *written},
                                {"compile_ms", compiled->times.total_ms()}};
    fmt::print("{}\n", out.dump());
    return ExitCode::Ok;
  }
  for (const std::string& path : *written) fmt::print("{}\n", path);
  return ExitCode::Ok;
}

}  // namespace

Run add_build(CLI::App& app, Session&) {
  auto options = std::make_shared<BuildOptions>();
  options->kernel.add_to(app);
  app.add_option("--out", options->out, "The folder for <kernel>.o, .h and .twk")->capture_default_str();
  app.add_flag("--specialise", options->specialise, "Make every dimension a constant (give them with --dim)");
  app.add_flag("--json", options->json, "Print JSON");
  app.footer(
      "The object and its header link into a C or C++ program with libtilewright_runtime alone; the .twk file (of CUDA "
      "all "
      "that is needed beside the .cubin or .ptx to look at) is "
      "loaded by\n"
      "tw_plan_load_file() or from Python. In CMake: tilewright_add_kernel(name SOURCE file.tile KERNEL name).\n\n"
      "Examples:\n"
      "  tilewright build kernels/matmul.tile --kernel matmul --target cuda:sm_90a --out build/kernels\n"
      "  tilewright build kernels/softmax.tile --target cpu:x86-64-v3 --out build/kernels\n"
      "  tilewright build kernels/matmul_relu.tile --param T=f32 --dim M=1024,N=1024,K=1024 --specialise --out .");
  return [options] { return build(*options); };
}

}  // namespace tilewright::tools
