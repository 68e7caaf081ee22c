#include "bench/oracle/data.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "base/hash.h"
#include "base/narrow_float.h"
#include "bench/oracle/parallel.h"

namespace tilewright::bench {
namespace {

constexpr std::array<std::pair<Distribution, std::string_view>, 6> kNames = {{{Distribution::Normal, "normal"},
                                                                              {Distribution::Uniform, "uniform"},
                                                                              {Distribution::Large, "large"},
                                                                              {Distribution::Specials, "specials"},
                                                                              {Distribution::Integers, "integers"},
                                                                              {Distribution::Zeros, "zeros"}}};

/// splitmix64 (Steele, Lea, Flood 2014): the n-th output of the stream that starts at `state`.
uint64_t mix(uint64_t state) {
  state += 0x9E3779B97F4A7C15;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

/// Independent words for element i.
struct Draw {
  uint64_t stream;
  uint64_t word(uint64_t i, uint64_t which) const { return mix(mix(stream + i) + which); }
  /// In (0, 1].
  double unit(uint64_t i, uint64_t which) const { return (static_cast<double>(word(i, which) >> 11) + 1) * 0x1p-53; }
  /// Box–Muller.
  double normal(uint64_t i) const {
    return std::sqrt(-2 * std::log(unit(i, 0))) * std::cos(2 * std::numbers::pi * unit(i, 1));
  }
  int64_t integer(uint64_t i, int64_t low, int64_t high) const {
    return low + static_cast<int64_t>(word(i, 2) % static_cast<uint64_t>(high - low + 1));
  }
};

double special(const Draw& draw, uint64_t i, DType dtype) {
  const double largest = largest_finite(dtype), tiny = dtype == DType::F16 ? 0x1p-24 : 0x1p-133;
  const std::array<double, 8> values = {0.0,
                                        -0.0,
                                        tiny,
                                        -tiny,
                                        largest,
                                        -largest,
                                        std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN()};
  const uint64_t pick = draw.word(i, 3);
  return pick % 64 ? draw.normal(i) : values[pick / 64 % values.size()];
}

double float_value(const Draw& draw, uint64_t i, DType dtype, Distribution distribution) {
  switch (distribution) {
    case Distribution::Normal: return draw.normal(i);
    case Distribution::Uniform: return 2 * draw.unit(i, 0) - 1;
    case Distribution::Large: return 64 * draw.normal(i);
    case Distribution::Specials: return special(draw, i, dtype);
    case Distribution::Integers: return static_cast<double>(draw.integer(i, -8, 8));
    case Distribution::Zeros: return 0;
  }
  return 0;
}

double value_of(const Draw& draw, uint64_t i, const Argument& arg, Distribution distribution) {
  if (arg.role == Role::Packed) return static_cast<double>(draw.integer(i, 0, 255));
  if (arg.role == Role::Scale) return 0.005 + 0.02 * draw.unit(i, 0);
  if (arg.role == Role::Weight && distribution != Distribution::Zeros) return 1 + 0.1 * draw.normal(i);
  if (is_float(arg.dtype)) return float_value(draw, i, arg.dtype, distribution);
  if (distribution == Distribution::Zeros) return 0;
  if (arg.dtype == DType::Bool) return static_cast<double>(draw.integer(i, 0, 1));
  const int64_t low = is_unsigned_int(arg.dtype) ? 0 : -1;
  const int64_t reach = bits(arg.dtype) == 8 && distribution != Distribution::Integers ? (low ? 127 : 255) : 8;
  return static_cast<double>(draw.integer(i, low * reach, reach));
}

}  // namespace

std::string_view name(Distribution distribution) { return kNames[static_cast<size_t>(distribution)].second; }

std::optional<Distribution> parse_distribution(std::string_view text) {
  for (const auto& [distribution, spelling] : kNames) {
    if (spelling == text) return distribution;
  }
  return std::nullopt;
}

bool supports_measurement(const DataSpec& data, DType in) {
  if (!is_float(in)) return data.distribution != Distribution::Zeros;
  return data.distribution == Distribution::Normal || data.distribution == Distribution::Uniform ||
         data.distribution == Distribution::Large;
}

HostTensor make_tensor(const Argument& argument, const DataSpec& data) {
  HostTensor tensor = zeros(argument.dtype, argument.shape);
  const Draw draw{mix(data.seed ^ hash128(argument.name).low)};
  const auto width = static_cast<size_t>(bytes(argument.dtype));
  for_each_range(tensor.numel(), 4096, [&](int64_t begin, int64_t end) {
    std::vector<double> values(static_cast<size_t>(end - begin));
    for (int64_t i = begin; i < end; ++i) {
      values[static_cast<size_t>(i - begin)] = value_of(draw, static_cast<uint64_t>(i), argument, data.distribution);
    }
    store_doubles(argument.dtype, values.data(), tensor.data.data() + static_cast<size_t>(begin) * width,
                  values.size());
  });
  return tensor;
}

std::vector<HostTensor> make_inputs(const Workload& workload, const DataSpec& data) {
  std::vector<HostTensor> inputs;
  for (const Argument& arg : arguments(workload)) {
    if (arg.is_output()) continue;
    if (arg.name == "lengths") {
      HostTensor lengths = zeros(DType::I64, arg.shape);
      for (size_t b = 0; b < workload.lengths.size(); ++b) {
        lengths.as<int64_t>()[2 * b] = workload.lengths[b].q;
        lengths.as<int64_t>()[2 * b + 1] = workload.lengths[b].k;
      }
      inputs.push_back(std::move(lengths));
    } else {
      inputs.push_back(make_tensor(arg, data));
    }
  }
  return inputs;
}

}  // namespace tilewright::bench
