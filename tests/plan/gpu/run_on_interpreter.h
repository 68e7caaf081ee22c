// Compiles `.tile` text for a GPU, runs the thread programs in the interpreter, and compares with the tile interpreter.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/narrow_float.h"
#include "device/plan_call.h"
#include "interp/interpreter.h"
#include "interp/thread_machine.h"
#include "lang/elaborate.h"
#include "runtime/report_layout.h"

namespace tilewright::plan::gpu {

struct TestArray {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
  TestArray(DType type, std::vector<int64_t> extents, std::vector<uint8_t> storage)
      : dtype(type), shape(std::move(extents)), bytes(std::move(storage)) {}
  TestArray(const TestArray& other) : dtype(other.dtype), shape(other.shape), bytes(other.bytes.size()) {
    // The aligned start may lie elsewhere in the copy.
    std::memcpy(data(), const_cast<TestArray&>(other).data(), static_cast<size_t>(count() * tilewright::bytes(dtype)));
  }
  TestArray(TestArray&&) = default;
  TestArray& operator=(TestArray other) {
    dtype = other.dtype;
    shape.swap(other.shape);
    bytes.swap(other.bytes);
    return *this;
  }
  uint8_t* data() { return bytes.data() + (128 - reinterpret_cast<uintptr_t>(bytes.data()) % 128) % 128; }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    return n;
  }
};

/// Small integers: every sum is exact in any order.
inline TestArray integers(DType dtype, std::vector<int64_t> shape, uint64_t seed, int range = 3) {
  TestArray a{dtype, std::move(shape), {}};
  std::vector<double> values;
  for (int64_t i = 0; i < a.count(); ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    values.push_back(
        static_cast<double>(static_cast<int64_t>((seed >> 33) % static_cast<uint64_t>(2 * range + 1)) - range));
  }
  a.bytes.assign(static_cast<size_t>(a.count() * tilewright::bytes(dtype)) + 256, 0xee);
  store_doubles(dtype, values.data(), a.data(), values.size());
  return a;
}

struct GpuCase {
  std::string text;
  std::string kernel;
  lang::Configuration configuration;
  std::vector<TestArray> arrays;  ///< by position in the kernel's tensors
  std::vector<double> scalars;
  double tolerance = 0;  ///< 0: equal bytes
};

inline ir::Kernel tile_of(const GpuCase& c) {
  auto source = lang::parse_source(c.text, "test.tile");
  if (!source) ADD_FAILURE() << source.error().message;
  auto configuration = c.configuration;
  configuration.target = lang::Target::Cuda;
  auto kernel = lang::instantiate(*source, c.kernel, configuration);
  if (!kernel) ADD_FAILURE() << kernel.error().message;
  return std::move(*kernel);
}

/// Empty, or what went wrong.
inline std::string run_case(const GpuCase& c, const target::Gpu& gpu, const Options& options = {},
                            interp::Moment moment = interp::Moment::Latest, uint64_t seed = 1,
                            GpuPlan* plan_out = nullptr, std::vector<uint64_t>* reports_out = nullptr) {
  const ir::Kernel tile = tile_of(c);
  auto planned = plan(tile, gpu, options);
  if (!planned) return planned.error().message;
  std::vector<TestArray> expected = c.arrays, got = c.arrays;
  interp::Call call;
  std::vector<device_cases::Array> arrays;
  for (size_t i = 0; i < c.arrays.size(); ++i) {
    call.tensors.push_back({c.arrays[i].dtype, expected[i].data(), c.arrays[i].shape, {}});
    arrays.push_back({reinterpret_cast<uint64_t>(got[i].data()), c.arrays[i].shape});
  }
  std::vector<int64_t> scalars;
  for (size_t i = 0; i < c.scalars.size(); ++i) {
    const DType dtype = tile.scalars[i].value->type.dtype;
    ir::ConstantAttributes value;
    value.real = c.scalars[i];
    value.integer = static_cast<int64_t>(c.scalars[i]);
    call.scalars.push_back(value);
    scalars.push_back(dtype == DType::F64 ? std::bit_cast<int64_t>(c.scalars[i])
                      : is_float(dtype)
                          ? static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(c.scalars[i])))
                          : static_cast<int64_t>(c.scalars[i]));
  }
  const auto oracle = interp::run(tile, call);
  if (!oracle) return "oracle: " + oracle.error().message;
  auto run = device_cases::begin_call(planned->recipe, arrays, scalars);
  if (!run.problem.empty()) return "requirement: " + run.problem;
  std::vector<TestArray> workspaces;
  for (size_t i = 0; i < run.workspace_bytes.size(); ++i) {
    workspaces.push_back({DType::U8,
                          {run.workspace_bytes[i]},
                          std::vector<uint8_t>(static_cast<size_t>(run.workspace_bytes[i]) + 256, 0xee)});
    std::memset(workspaces.back().data(), 0, static_cast<size_t>(run.workspace_zeroed[i]));
    run.pointers.push_back(reinterpret_cast<uint64_t>(workspaces.back().data()));
  }
  std::vector<interp::ThreadBuffer> buffers;
  for (size_t i = 0; i < got.size(); ++i)
    buffers.push_back({got[i].data(), static_cast<size_t>(got[i].count() * tilewright::bytes(got[i].dtype))});
  std::vector<uint64_t> reports(runtime::report::kBytes / 8, 0);
  buffers.push_back({reports.data(), runtime::report::kBytes});
  for (TestArray& w : workspaces) buffers.push_back({w.data(), static_cast<size_t>(w.count())});
  for (size_t l = 0; l < planned->programs.size(); ++l) {
    const runtime::Launch& launch = planned->recipe.launches[l];
    std::vector<interp::ThreadArgument> arguments;
    for (uint64_t p : run.pointers) arguments.push_back({p, {}});
    if (!planned->recipe.messages.empty()) {
      arguments.push_back({reinterpret_cast<uint64_t>(reports.data()), {}});
      arguments.push_back({0, {}});
    }
    for (int64_t s : run.slots) arguments.push_back({static_cast<uint64_t>(s), {}});
    for (const auto& m : launch.tensor_maps) arguments.push_back({0, device_cases::map_of(m, run)});
    const auto status = interp::run_threads(planned->programs[l], device_cases::grid_of(launch, run), arguments,
                                            buffers, {.moment = moment, .seed = seed});
    if (!status) return status.error().message;
  }
  if (reports_out) *reports_out = reports;
  if (plan_out) plan_out->recipe = planned->recipe;
  for (size_t i = 0; i < got.size(); ++i) {
    if (tile.tensors[i].direction == ir::Direction::In) continue;
    const auto count = static_cast<size_t>(got[i].count());
    std::vector<double> x(count), y(count);
    load_doubles(got[i].dtype, expected[i].data(), x.data(), count);
    load_doubles(got[i].dtype, got[i].data(), y.data(), count);
    for (size_t e = 0; e < count; ++e) {
      const bool same = c.tolerance == 0 ? (x[e] == y[e] || (std::isnan(x[e]) && std::isnan(y[e])))
                                         : std::fabs(x[e] - y[e]) <= c.tolerance * std::max(1.0, std::fabs(x[e]));
      if (!same) return fmt::format("tensor {} element {}: {} instead of {}", i, e, y[e], x[e]);
    }
  }
  if (plan_out) *plan_out = std::move(*planned);
  return {};
}

}  // namespace tilewright::plan::gpu
