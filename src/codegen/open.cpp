#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <mutex>
#include <optional>

#include "base/loaded_file.h"
#include "codegen/backend.h"

namespace tilewright::codegen {
namespace {

constexpr const char* kModule = "libtilewright-jit.so";

/// Paths beside the binary this code is in. Never relative to the current folder: what lies there is not ours.
std::vector<std::string> places() {
  std::vector<std::string> out;
  std::error_code error;
  const auto binary = std::filesystem::canonical(loaded_file(reinterpret_cast<const void*>(&places)), error);
  if (!error) {
    for (const char* relative : {".", "../lib", "../lib/tilewright"}) {
      out.push_back((binary.parent_path() / relative / kModule).lexically_normal());
    }
  }
  out.emplace_back(kModule);
  return out;
}

Result<const Backend*> load() {
  std::string reasons;
  for (const std::string& path : places()) {
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module) {
      reasons += fmt::format("\n    {}", dlerror());
      continue;
    }
    using Entry = const Backend* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(module, "tw_jit_backend"));
    const Backend* backend = entry ? entry() : nullptr;
    if (backend && backend->abi == kBackendAbi) return backend;
    return fail(DiagnosticCode::E2501,
                fmt::format("{} belongs to another build (interface {}, this program needs {})", path,
                            backend ? backend->abi : 0, kBackendAbi),
                "install the program and the module from one build");
  }
  return fail(DiagnosticCode::E2501, fmt::format("the compiler module {} could not be opened:{}", kModule, reasons),
              "install it beside the program or in ../lib, or use kernels built ahead of time");
}

}  // namespace

std::string backend_path() {
  for (const std::string& path : places()) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return {};
}

Result<const Backend*> open_backend() {
  static std::once_flag once;
  static std::optional<Result<const Backend*>> backend;
  std::call_once(once, [] { backend = load(); });
  return *backend;
}

}  // namespace tilewright::codegen
