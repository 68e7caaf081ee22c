// Clocks, power and temperature of a device by NVML (libnvidia-ml.so.1, opened at run time). Reads only: nothing is
// ever set.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace tilewright::cuda {

struct ClockSample {
  unsigned sm_mhz = 0;
  unsigned memory_mhz = 0;
  double power_w = 0;
  unsigned celsius = 0;
};

class ClockReader {
 public:
  /// Null without NVML or when it does not know the device.
  static std::unique_ptr<ClockReader> open(const std::string& pci_bus_id);
  ~ClockReader();
  ClockReader(const ClockReader&) = delete;
  ClockReader& operator=(const ClockReader&) = delete;

  /// About a millisecond; nothing when the driver does not say.
  std::optional<ClockSample> read() const;

 private:
  struct Api;
  explicit ClockReader(std::unique_ptr<Api> api);
  std::unique_ptr<Api> api_;
};

}  // namespace tilewright::cuda
