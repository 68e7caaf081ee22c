#include "bench/roofline.h"

#include <algorithm>
#include <cstring>

#include "bench/ceiling.h"
#include "bench/device_session.h"
#include "bench/multiply_add.h"
#include "measure/machine.h"

namespace tilewright::bench {
namespace {

using nlohmann::json;

/// The best of `repeats`, each of which is told.
template <typename Body>
double best_ms(int threads, int repeats, const std::function<void()>& told, Body body) {
  double best = 1e300;
  for (int i = 0; i < repeats; ++i) {
    best = std::min(best, parallel_ms(threads, body));
    if (told) told();
  }
  return best;
}

double sum_of(const uint64_t* data, size_t count) {
  uint64_t sum[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
    for (size_t k = 0; k < 8; ++k) sum[k] += data[i + k];
  }
  uint64_t all = 0;
  for (uint64_t s : sum) all += s;
  return static_cast<double>(all);
}

}  // namespace

Roofline measure_roofline(int threads, int repeats, const std::function<void()>& told) {
  const int memory_repeats = std::max(2, repeats / 10);
  Roofline out;
  out.threads = threads;

  const MultiplyAdd loop = best_multiply_add();
  constexpr int64_t kRounds = 100'000;  // about a millisecond: among a hundred, some run undisturbed
  const double ms = best_ms(threads, repeats, told, [&](int) { keep_alive(loop.run(kRounds)); });
  out.f32_gflops = loop.flops_per_round * kRounds * threads / (ms * 1e6);

  // Few repeats are a look, for toys: partly from the cache, so that floors only become lower.
  constexpr int kLook = 20;
  const int64_t wanted = repeats <= kLook
                             ? int64_t{64} << 20
                             : std::max<int64_t>(4 * measure::last_level_cache_bytes(), int64_t{256} << 20);
  const int64_t affordable = std::max<int64_t>(measure::available_memory_bytes() / 8, int64_t{64} << 20);
  const size_t count = static_cast<size_t>(std::min({wanted, affordable, int64_t{512} << 20})) / sizeof(uint64_t) / 2;
  std::vector<uint64_t> from(count, 1), to(count, 2);
  const size_t part = count / static_cast<size_t>(threads) / 8 * 8;
  const double bytes = static_cast<double>(part) * threads * sizeof(uint64_t);
  const double read_ms = best_ms(threads, memory_repeats, told,
                                 [&](int t) { keep_alive(sum_of(from.data() + part * static_cast<size_t>(t), part)); });
  const double copy_ms = best_ms(threads, memory_repeats, told, [&](int t) {
    std::memcpy(to.data() + part * static_cast<size_t>(t), from.data() + part * static_cast<size_t>(t),
                part * sizeof(uint64_t));
  });
  out.read_gb_per_s = bytes / (read_ms * 1e6);
  out.copy_gb_per_s = 2 * bytes / (copy_ms * 1e6);
  return out;
}

Roofline best_of(const Roofline& a, const Roofline& b) {
  return {std::max(a.f32_gflops, b.f32_gflops), std::max(a.read_gb_per_s, b.read_gb_per_s),
          std::max(a.copy_gb_per_s, b.copy_gb_per_s), std::max(a.threads, b.threads), a.device};
}

json to_json(const Roofline& r) {
  return {{"f32_gflops", r.f32_gflops},
          {"read_gb_per_s", r.read_gb_per_s},
          {"copy_gb_per_s", r.copy_gb_per_s},
          {"threads", r.threads},
          {"device", r.device}};
}

Roofline parse_roofline(const json& object) {
  return {object.value("f32_gflops", 0.0), object.value("read_gb_per_s", 0.0), object.value("copy_gb_per_s", 0.0),
          object.value("threads", 1), object.value("device", "")};
}

Result<json> run_roofline(const StageRequest& request, StageChannel& channel) {
  channel.step("roofline");
  if (is_cuda(request.device)) {
    auto session = DeviceSession::open(request.device);
    if (!session) return std::unexpected(session.error());
    auto copy = (*session)->copy_gb_per_s();
    if (!copy) return std::unexpected(copy.error());
    return to_json(Roofline{0, *copy, *copy, request.threads, (*session)->name()});
  }
  return to_json(measure_roofline(request.threads, request.rounds, [&] { channel.step("roofline"); }));
}

double physical_floor_ms(const Roofline& r, double flops, double bytes, DType in) {
  if (r.read_gb_per_s <= 0) return 0;
  // Matrix units do at most 16 times the f32 rate on 16-bit inputs and 32 times on 8-bit ones.
  const double scale = in == DType::F64 ? 1 : bits(in) >= 32 ? 1 : bits(in) == 16 ? 16 : 32;
  // Margins for what the probes did not reach: turbo phases, a better copy loop, a partly cached output.
  constexpr double kPeakMargin = 0.6, kBandwidthMargin = 0.4;
  const double compute_ms = r.f32_gflops > 0 ? flops / (r.f32_gflops * 1e6 * scale) * kPeakMargin : 0;
  const double memory_ms = bytes / (std::max(r.read_gb_per_s, r.copy_gb_per_s) * 1e6) * kBandwidthMargin;
  return std::max(compute_ms, memory_ms);
}

}  // namespace tilewright::bench
