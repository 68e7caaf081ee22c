#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tilewright::cuda {
namespace {

constexpr int kLeastVersion = 12000;

Result<Driver> load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return fail(DiagnosticCode::E3051, "no CUDA driver on this machine: libcuda.so.1 cannot be opened",
                "use --target cpu, or install an NVIDIA driver");
  }
  Driver driver;
  const char* missing = nullptr;
#define TW_CUDA(member, symbol, ...)                                              \
  driver.member = reinterpret_cast<int (*)(__VA_ARGS__)>(dlsym(library, symbol)); \
  if (!driver.member) missing = symbol;
#include "runtime/cuda/driver.def"
#undef TW_CUDA
  driver.encode_tensor_map =
      reinterpret_cast<decltype(driver.encode_tensor_map)>(dlsym(library, "cuTensorMapEncodeTiled"));
  if (driver.driver_version) driver.driver_version(&driver.version);
  if (missing || driver.version < kLeastVersion) {
    return fail(DiagnosticCode::E3052,
                fmt::format("the CUDA driver is too old: it supports CUDA {}.{}{}, {}.0 is needed",
                            driver.version / 1000, driver.version % 1000 / 10,
                            missing ? fmt::format(" and lacks {}", missing) : "", kLeastVersion / 1000),
                "update the NVIDIA driver (525 or newer)");
  }
  if (const int result = driver.init(0); result != 0) {
    const char* text = nullptr;
    driver.error_string(result, &text);
    return fail(DiagnosticCode::E3051, fmt::format("the CUDA driver cannot be used: {}", text ? text : "cuInit failed"),
                "use --target cpu");
  }
  return driver;
}

}  // namespace

Result<const Driver*> Driver::open() {
  static const Result<Driver> driver = load();
  if (!driver) return std::unexpected(driver.error());
  return &*driver;
}

bool is_sticky(int result) {
  return result == 214 || result == 700 || result == 702 || result == 710 || (result >= 714 && result <= 719);
}

Status Driver::check(int result, std::string_view doing) const {
  if (result == 0) return {};
  const char *error = "CUDA_ERROR", *text = "unknown";
  error_name(result, &error);
  error_string(result, &text);
  if (is_sticky(result)) {
    return fail(DiagnosticCode::E3053, fmt::format("{}: the device faulted: {} ({})", doing, error, text),
                "everything this process computed on the device since the last check is void; start a new process");
  }
  if (result == 2)
    return fail(DiagnosticCode::E3054, fmt::format("{}: out of device memory ({})", doing, error),
                "free memory or use smaller sizes");
  return fail(DiagnosticCode::E3055, fmt::format("{}: {} ({})", doing, error, text));
}

Status check_tensor_map(const TensorMap& map) {
  const auto refuse = [](std::string message) {
    return fail(DiagnosticCode::E1450, "the copy engine cannot address this tensor: " + message);
  };
  if (map.address % 16)
    return refuse(fmt::format("its first element is at an address that is not a multiple of 16 ({:#x})", map.address));
  for (int i = 0; i < map.rank; ++i) {
    const auto d = static_cast<size_t>(i);
    if (map.extent[d] < 1 || map.extent[d] > (uint64_t{1} << 32))
      return refuse(fmt::format("extent {} of dimension {}", map.extent[d], i));
    if (i > 0 && (map.stride[d] % 16 || map.stride[d] >= (uint64_t{1} << 40)))
      return refuse(fmt::format("stride {} bytes of dimension {} is not a multiple of 16", map.stride[d], i));
    if (map.box[d] < 1 || map.box[d] > 256) return refuse(fmt::format("box {} of dimension {}", map.box[d], i));
  }
  const uint32_t inner = map.box[0] * static_cast<uint32_t>(map.element_bytes);
  if (inner % 16) return refuse(fmt::format("inner box of {} bytes is not a multiple of 16", inner));
  if (map.swizzle != Swizzle::None && inner > static_cast<uint32_t>(swizzle_bytes(map.swizzle)))
    return refuse(fmt::format("inner box of {} bytes exceeds its swizzle", inner));
  return {};
}

Result<EncodedTensorMap> encode(const Driver& driver, const TensorMap& map) {
  if (auto status = check_tensor_map(map); !status) return std::unexpected(status.error());
  if (!driver.encode_tensor_map) return fail(DiagnosticCode::E3052, "the CUDA driver lacks cuTensorMapEncodeTiled");
  constexpr int kTypes[] = {0, 1, 6, 9, 3, 7, 8};
  constexpr int kPromote256 = 3;
  const uint32_t ones[TensorMap::kMaxRank] = {1, 1, 1, 1, 1};
  EncodedTensorMap out;
  const int result = driver.encode_tensor_map(
      &out, kTypes[static_cast<int>(map.type)], static_cast<uint32_t>(map.rank), reinterpret_cast<void*>(map.address),
      map.extent.data(), map.stride.data() + 1, map.box.data(), ones, 0, static_cast<int>(map.swizzle), kPromote256, 0);
  if (auto status = driver.check(result, "encoding a tensor map"); !status) return std::unexpected(status.error());
  return out;
}

}  // namespace tilewright::cuda
