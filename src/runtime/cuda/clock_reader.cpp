#include "runtime/cuda/clock_reader.h"

#include <dlfcn.h>

namespace tilewright::cuda {

struct ClockReader::Api {
  void* library = nullptr;
  void* device = nullptr;
  bool is_running = false;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_bus)(const char*, void**) = nullptr;
  int (*clock)(void*, int, unsigned*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;
  int (*temperature)(void*, int, unsigned*) = nullptr;

  template <typename F>
  bool find(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(library, symbol));
    return function != nullptr;
  }
  bool bind() {
    return find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") &&
           find(by_bus, "nvmlDeviceGetHandleByPciBusId_v2") && find(clock, "nvmlDeviceGetClockInfo") &&
           find(power, "nvmlDeviceGetPowerUsage") && find(temperature, "nvmlDeviceGetTemperature");
  }
};

ClockReader::ClockReader(std::unique_ptr<Api> api) : api_(std::move(api)) {}

ClockReader::~ClockReader() {
  if (api_->is_running) api_->shutdown();
}

std::unique_ptr<ClockReader> ClockReader::open(const std::string& pci_bus_id) {
  auto api = std::make_unique<Api>();
  api->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);  // kept open: it is small and shared
  if (!api->library || !api->bind() || api->init() != 0) return nullptr;
  api->is_running = true;
  std::unique_ptr<ClockReader> out(new ClockReader(std::move(api)));
  if (out->api_->by_bus(pci_bus_id.c_str(), &out->api_->device) != 0) return nullptr;
  return out;
}

std::optional<ClockSample> ClockReader::read() const {
  constexpr int kSm = 1, kMemory = 2, kOfTheGpu = 0;
  ClockSample out;
  unsigned milliwatts = 0;
  if (api_->clock(api_->device, kSm, &out.sm_mhz) != 0) return std::nullopt;
  api_->clock(api_->device, kMemory, &out.memory_mhz);
  if (api_->power(api_->device, &milliwatts) == 0) out.power_w = milliwatts * 1e-3;
  api_->temperature(api_->device, kOfTheGpu, &out.celsius);
  return out;
}

}  // namespace tilewright::cuda
