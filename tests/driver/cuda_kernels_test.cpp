// Every kernel and example at its default configuration becomes machine code for sm_80 and sm_90a with no GPU present,
// and none of it spills registers.
#include <gtest/gtest.h>

#include <filesystem>

#include "codegen/cuda/assemble.h"
#include "driver/cuda_compile.h"
#include "driver/program.h"

namespace tilewright::driver {
namespace {

namespace fs = std::filesystem;

/// Examples that show a mistake for `run --check` are kernels like any other here.
std::vector<fs::path> tile_files() {
  std::vector<fs::path> out;
  for (const char* folder : {"/kernels", "/examples"})
    for (const auto& entry : fs::directory_iterator(std::string(TW_SOURCE_DIR) + folder))
      if (entry.path().extension() == ".tile") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

/// "registers N a thread, 0 bytes of stack (spills)" says so.
bool spills(const Compilation& c) {
  for (const auto& fact : c.facts)
    if (fact.what == "registers" && fact.why.find(" 0 bytes of stack") == std::string::npos) return true;
  return false;
}

/// The kernel as it stands, and with bf16 operands where a parameter takes them.
std::vector<KernelRequest> requests(const fs::path& file, const std::string& kernel) {
  std::vector<KernelRequest> out = {{.path = file.string(), .kernel = kernel, .target = lang::Target::Cuda}};
  for (const char* parameter : {"T", "E"}) {
    KernelRequest r = out[0];
    r.params[parameter] = "bf16";
    if (load_program(r)) out.push_back(r);
  }
  return out;
}

class CudaKernels : public testing::TestWithParam<const char*> {};

TEST_P(CudaKernels, AssembleWithoutSpilling) {
  if (const auto assembler = codegen::Assembler::open(); !assembler) GTEST_SKIP() << assembler.error().message;
  const auto gpu = *target::parse_gpu(GetParam());
  int kernels = 0;
  for (const fs::path& file : tile_files()) {
    const auto source = lang::load_source(file.string());
    ASSERT_TRUE(source) << file;
    for (const std::string& name : source->kernel_names()) {
      for (const KernelRequest& request : requests(file, name)) {
        const auto program = load_program(request);
        if (!program) {
          ADD_FAILURE() << name << ": " << program.error().rendered;
          continue;
        }
        const auto compiled = compile_cuda(program->kernel, {.gpu = gpu, .want_stages = true});
        const std::string what = file.filename().string() + " " + name + (request.params.empty() ? "" : " in bf16");
        if (!compiled) {
          ADD_FAILURE() << what << ": " << program->source.render(compiled.error());
          continue;
        }
        EXPECT_FALSE(spills(*compiled)) << what << " spills";
        ++kernels;
      }
    }
  }
  EXPECT_GE(kernels, 30);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudaKernels, testing::Values("sm_80", "sm_90a"));

}  // namespace
}  // namespace tilewright::driver
