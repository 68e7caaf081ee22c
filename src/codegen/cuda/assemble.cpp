#include "codegen/cuda/assemble.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

namespace tilewright::codegen {

namespace {
using Handle = struct nvJitLink*;
constexpr int kInputPtx = 2;

/// Where the loader, a toolkit (step 1) or a Python package (step 2, a walk over site-packages) may have the library.
std::vector<std::string> candidates(int step) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> out;
  if (step == 0) return {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"};
  if (step == 1) {
    for (const auto& entry : fs::directory_iterator("/usr/local", ignored)) {
      if (!entry.path().filename().string().starts_with("cuda")) continue;
      for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"})
        for (const char* file : {"libnvJitLink.so.13", "libnvJitLink.so.12"})
          out.push_back(entry.path() / folder / file);
    }
    return out;
  }
  for (const char* root : {"/usr/lib/python3", "/usr/local/lib", "/opt"}) {
    fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, ignored), end;
    for (; !ignored && it != end; it.increment(ignored)) {
      if (it.depth() > 9) it.disable_recursion_pending();
      const std::string file = it->path().filename().string();
      if (file == "libnvJitLink.so.13" || file == "libnvJitLink.so.12") out.push_back(it->path());
    }
  }
  return out;
}

template <typename T>
T read_at(const std::string& bytes, size_t offset) {
  T value{};
  if (offset + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}
}  // namespace

struct Assembler::Api {
  void* library = nullptr;
  int (*create)(Handle*, uint32_t, const char**) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*add_data)(Handle, int, const void*, size_t, const char*) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubin_size)(Handle, size_t*) = nullptr;
  int (*cubin)(Handle, void*) = nullptr;
  int (*error_size)(Handle, size_t*) = nullptr;
  int (*error)(Handle, char*) = nullptr;
  int (*info_size)(Handle, size_t*) = nullptr;
  int (*info)(Handle, char*) = nullptr;
  int (*version)(unsigned*, unsigned*) = nullptr;

  template <typename F>
  bool find(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(library, symbol));
    return function != nullptr;
  }
  bool bind() {
    find(version, "nvJitLinkVersion");
    return find(create, "nvJitLinkCreate") && find(destroy, "nvJitLinkDestroy") && find(add_data, "nvJitLinkAddData") &&
           find(complete, "nvJitLinkComplete") && find(cubin_size, "nvJitLinkGetLinkedCubinSize") &&
           find(cubin, "nvJitLinkGetLinkedCubin") && find(error_size, "nvJitLinkGetErrorLogSize") &&
           find(error, "nvJitLinkGetErrorLog") && find(info_size, "nvJitLinkGetInfoLogSize") &&
           find(info, "nvJitLinkGetInfoLog");
  }
  std::string log(Handle handle, bool is_error) const {
    size_t size = 0;
    if ((is_error ? error_size : info_size)(handle, &size) != 0 || size == 0) return {};
    std::string text(size, '\0');
    (is_error ? error : info)(handle, text.data());
    text.resize(std::strlen(text.c_str()));
    return text;
  }
};

Result<Assembler> Assembler::open(const std::string& path) {
  std::string tried;
  const auto try_one = [&](const std::string& candidate) -> std::shared_ptr<const Api> {
    auto api = std::make_shared<Api>();
    api->library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (api->library && api->bind()) return api;
    tried += (tried.empty() ? "" : ", ") + candidate;
    return nullptr;
  };
  Assembler out;
  for (int step = 0; step < 3; ++step) {
    for (const std::string& candidate : path.empty() ? candidates(step) : std::vector{path}) {
      out.api_ = try_one(candidate);
      out.path_ = candidate;
      if (out.api_) return out;
    }
    if (!path.empty()) break;
  }
  return fail(DiagnosticCode::E3050, fmt::format("the PTX assembler libnvJitLink was not found; tried {}", tried),
              "install a CUDA toolkit or the Python package nvidia-nvjitlink, or name the library by its path");
}

std::string Assembler::version() const {
  unsigned major = 0, minor = 0;
  if (api_->version) api_->version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

Result<Cubin> Assembler::assemble(const std::string& ptx, const std::string& architecture) const {
  const std::string arch = "-arch=" + architecture;
  const char* options[] = {arch.c_str(), "-verbose"};
  Handle handle = nullptr;
  if (api_->create(&handle, 2, options) != 0) {
    return fail(DiagnosticCode::E2553, fmt::format("{} does not know the architecture {}", path_, architecture));
  }
  int status = api_->add_data(handle, kInputPtx, ptx.data(), ptx.size() + 1, "kernel.ptx");
  if (status == 0) status = api_->complete(handle);
  Cubin out;
  size_t size = 0;
  if (status == 0) status = api_->cubin_size(handle, &size);
  out.image.resize(size);
  if (status == 0) status = api_->cubin(handle, out.image.data());
  const std::string errors = api_->log(handle, true), info = api_->log(handle, false);
  api_->destroy(&handle);
  if (status != 0)
    return fail(DiagnosticCode::E2553,
                fmt::format("the assembler refused the kernel (status {}):\n{}{}", status, errors, info));
  auto resources = read_resources(out.image);
  if (!resources) return std::unexpected(resources.error());
  out.resources = std::move(*resources);
  for (const std::string& text : {errors, info}) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      if (line.find("(C7") != std::string::npos || line.find("warning") != std::string::npos)
        out.resources.warnings.push_back(line);
      at = end + 1;
    }
  }
  return out;
}

// The section .nv.info holds (format u8, attribute u8, size u16, payload) records: 0x2f = registers, 0x11 = frame size
// per function.
Result<Resources> read_resources(const std::string& image) {
  if (image.size() < 64 || std::memcmp(image.data(),
                                       "\x7f"
                                       "ELF",
                                       4) != 0)
    return fail(DiagnosticCode::E2552, "the machine code is not an ELF image");
  const auto sections = read_at<uint64_t>(image, 0x28);
  const auto entry = read_at<uint16_t>(image, 0x3a), count = read_at<uint16_t>(image, 0x3c),
             names = read_at<uint16_t>(image, 0x3e);
  const auto name_table = read_at<uint64_t>(image, sections + uint64_t{names} * entry + 0x18);
  Resources out;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t header = sections + i * entry;
    const size_t name_at = name_table + read_at<uint32_t>(image, header);
    if (name_at >= image.size()) return fail(DiagnosticCode::E2552, "the machine code's section table is damaged");
    const std::string_view name(image.c_str() + name_at);
    const auto offset = read_at<uint64_t>(image, header + 0x18), size = read_at<uint64_t>(image, header + 0x20);
    if (name.starts_with(".nv.shared.")) out.static_shared_bytes += static_cast<int>(size);
    if (name != ".nv.info") continue;
    for (uint64_t at = offset; at + 4 <= offset + size;) {
      const auto format = read_at<uint8_t>(image, at), attribute = read_at<uint8_t>(image, at + 1);
      const auto payload = read_at<uint16_t>(image, at + 2);
      if (format != 4) {
        at += 4;
        continue;
      }
      if (attribute == 0x2f) out.registers = std::max(out.registers, read_at<int>(image, at + 8));
      if (attribute == 0x11) out.stack_bytes = std::max(out.stack_bytes, read_at<int>(image, at + 8));
      at += 4u + payload;
    }
  }
  return out;
}

}  // namespace tilewright::codegen
