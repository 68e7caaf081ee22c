// The one exported symbol of libtilewright-jit.so.
#include "codegen/backend.h"
#include "codegen/cpu/compile.h"

extern "C" __attribute__((visibility("default"))) const tilewright::codegen::Backend* tw_jit_backend() {
  using namespace tilewright::codegen;
  static const Backend backend{.abi = kBackendAbi,
                               .compile_cpu = compile_cpu,
                               .cpu_toolchain = cpu_toolchain,
                               .host_cpu_options = host_cpu_options};
  return &backend;
}
