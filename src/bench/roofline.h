// The ceilings of this machine, measured beside the kernels: multiply-adds from registers, and memory traffic.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "bench/stage_message.h"

namespace tilewright::bench {

struct Roofline {
  double f32_gflops = 0;     ///< fused multiply-adds on all threads, operands in registers
  double read_gb_per_s = 0;  ///< a sum over memory far larger than the caches
  double copy_gb_per_s = 0;  ///< bytes read plus bytes written of a streaming copy
  int threads = 1;
  std::string device;  ///< of a device: its name; then f32_gflops is 0, not measured
};

/// `repeats` of the arithmetic loop, and a tenth of it of the memory loops; the best counts. `told` is called after
/// each: on a busy machine the whole may take longer than a child may be silent.
Roofline measure_roofline(int threads, int repeats = 100, const std::function<void()>& told = {});
Result<nlohmann::json> run_roofline(const StageRequest& request, StageChannel& channel);
/// What either found: a ceiling is what the machine can do, and noise only ever hides it.
Roofline best_of(const Roofline& a, const Roofline& b);

nlohmann::json to_json(const Roofline& roofline);
Roofline parse_roofline(const nlohmann::json& json);

/// No kernel can be faster: the greater of flops / peak and bytes / bandwidth, in ms. Peaks of narrow types are scaled
/// by what the best instructions of the machine could do, so that the floor is never too high.
double physical_floor_ms(const Roofline& roofline, double flops, double bytes, DType in);

}  // namespace tilewright::bench
