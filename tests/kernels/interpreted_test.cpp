// Every kernel and example at odd extents through the checking interpreter: no finding, and the value of its reference.
// The wrong examples are each refused at their line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "base/narrow_float.h"
#include "base/tensor_file.h"
#include "interp/interpreter.h"
#include "kernels/reference.h"
#include "lang/elaborate.h"

namespace tilewright::kernels {
namespace {

using lang::Configuration;
using Sizes = std::map<std::string, int64_t>;

struct Execution {
  std::vector<HostTensor> tensors;
  interp::Outcome outcome;
};

int64_t extent_of(ir::Index x, const ir::Kernel& kernel, const Sizes& sizes) {
  return ir::evaluate(x, [&](const ir::Value* v) {
    for (const ir::Dimension& d : kernel.dimensions) {
      if (d.value == v) return sizes.at(d.name);
    }
    return int64_t{0};
  });
}

HostTensor random_tensor(DType dtype, std::vector<int64_t> shape, std::mt19937& random) {
  HostTensor out = zeros(dtype, std::move(shape));
  std::vector<double> values(static_cast<size_t>(out.numel()));
  for (double& v : values) {
    const double unit = static_cast<double>(random() % 2001) / 1000.0 - 1.0;
    v = is_float(dtype) ? unit : dtype == DType::U8 ? static_cast<double>(random() % 256) : std::floor(unit * 100);
  }
  store_doubles(dtype, values.data(), out.data.data(), values.size());
  return out;
}

/// Runs with the checks on; scalars without a default get 0.25.
Execution execute(const ir::Kernel& kernel, const Sizes& sizes, uint32_t seed) {
  std::mt19937 random(seed);
  Execution out;
  interp::Call call;
  for (const ir::TensorArgument& t : kernel.tensors) {
    std::vector<int64_t> shape;
    for (const ir::Index& extent : t.buffer->type.shape) shape.push_back(extent_of(extent, kernel, sizes));
    const bool read = t.direction == ir::Direction::In || t.direction == ir::Direction::InOut;
    out.tensors.push_back(read ? random_tensor(t.buffer->type.dtype, shape, random)
                               : zeros(t.buffer->type.dtype, shape));
  }
  for (size_t i = 0; i < out.tensors.size(); ++i) {
    HostTensor& t = out.tensors[i];
    const bool none = kernel.tensors[i].direction == ir::Direction::Workspace || kernel.tensors[i].optional;
    call.tensors.push_back({t.dtype, none ? nullptr : t.data.data(), t.shape, {}});
  }
  for (const ir::ScalarArgument& s : kernel.scalars)
    call.scalars.push_back(s.default_value.value_or(ir::ConstantAttributes{.real = 0.25}));
  Result<interp::Outcome> outcome = interp::run(kernel, call, {.check = true, .seed = seed});
  if (!outcome) throw std::runtime_error(render(outcome.error()));
  out.outcome = std::move(*outcome);
  return out;
}

DoubleTensor doubles(const HostTensor& t) {
  DoubleTensor out = DoubleTensor::zeros(t.shape);
  load_doubles(t.dtype, t.data.data(), out.data.data(), out.data.size());
  return out;
}

void expect_reference(const lang::KernelInfo& info, const ir::Kernel& kernel, const Execution& run,
                      const Sizes& sizes) {
  std::map<std::string, DoubleTensor> arguments;
  for (size_t i = 0; i < run.tensors.size(); ++i) arguments[kernel.tensors[i].buffer->name] = doubles(run.tensors[i]);
  for (const ir::ScalarArgument& s : kernel.scalars)
    arguments[s.value->name] = DoubleTensor::scalar(s.default_value ? s.default_value->real : 0.25);
  for (const auto& [name, size] : sizes) {
    if (!arguments.contains(name)) arguments[name] = DoubleTensor::scalar(static_cast<double>(size));
  }
  size_t next = 0;
  for (size_t i = 0; i < run.tensors.size() && next < info.references.size(); ++i) {
    if (kernel.tensors[i].direction != ir::Direction::Out) continue;
    const Result<DoubleTensor> expected = evaluate_reference(info.references[next++], arguments);
    ASSERT_TRUE(expected) << render(expected.error());
    const DoubleTensor got = doubles(run.tensors[i]);
    ASSERT_EQ(got.shape, expected->shape);
    const double tolerance = is_float(run.tensors[i].dtype) ? 8 * unit_roundoff(run.tensors[i].dtype) + 6e-6 : 0;
    for (size_t e = 0; e < got.data.size(); ++e) {
      const double want = expected->data[e];
      if (std::isnan(want) && std::isnan(got.data[e])) continue;
      if (want == got.data[e]) continue;
      ASSERT_TRUE(std::isfinite(want)) << "output " << i << ", element " << e << ": " << got.data[e] << ", not "
                                       << want;
      ASSERT_NEAR(got.data[e], want, tolerance * std::max(4.0, std::fabs(want))) << "output " << i << ", element " << e;
    }
  }
}

std::vector<Sizes> odd_sizes(const lang::KernelInfo& info) {
  if (info.name.starts_with("attention")) {
    return {{{"B", 1}, {"S", 1}, {"T", 1}, {"HQ", 1}, {"HK", 1}, {"D", 32}},
            {{"B", 2}, {"S", 5}, {"T", 67}, {"HQ", 4}, {"HK", 2}, {"D", 32}},
            {{"B", 1}, {"S", 13}, {"T", 7}, {"HQ", 3}, {"HK", 1}, {"D", 40}},
            {{"B", 1}, {"S", 3}, {"T", 0}, {"HQ", 2}, {"HK", 2}, {"D", 32}}};
  }
  if (info.name == "matmul_w4") return {{{"M", 3}, {"N", 5}, {"K", 128}}, {{"M", 65}, {"N", 67}, {"K", 256}}};
  if (info.name == "topk") return {{{"R", 1}, {"C", 1}, {"N", 1}}, {{"R", 3}, {"C", 37}, {"N", 5}}};
  std::vector<Sizes> out(5);
  static constexpr int64_t kPrimes[] = {3, 67, 13, 7};
  for (size_t i = 0; i < info.dims.size(); ++i) {
    out[0][info.dims[i]] = 1;
    out[1][info.dims[i]] = kPrimes[i % 4];
    out[2][info.dims[i]] = kPrimes[(i + 1) % 4] + 64;
    out[3][info.dims[i]] = i == 0 ? 0 : 5;
    out[4][info.dims[i]] = i == 1 ? 0 : 5;
  }
  return out;
}

/// The smallest value of every integer parameter: several blocks and edges at small sizes.
std::map<std::string, lang::ParamValue> small_params(const lang::KernelInfo& info) {
  std::map<std::string, lang::ParamValue> out;
  for (const lang::ParamInfo& p : info.params) {
    if (!std::holds_alternative<int64_t>(p.value) || p.domain.empty() || p.name == "group") continue;
    out[p.name] = *std::ranges::min_element(p.domain);
  }
  return out;
}

std::vector<std::string> tile_files() {
  std::vector<std::string> out;
  for (const char* folder : {"/kernels", "/examples"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(TW_SOURCE_DIR) + folder)) {
      if (entry.path().extension() == ".tile") out.push_back(entry.path());
    }
  }
  std::ranges::sort(out);
  return out;
}

constexpr std::string_view kWrong[] = {"race", "out_of_bounds", "uninitialised", "communicating_iterations"};

class Interpreted : public testing::TestWithParam<std::string> {};

TEST_P(Interpreted, AtOddExtents) {
  const Result<lang::Source> source = lang::load_source(GetParam());
  ASSERT_TRUE(source) << render(source.error());
  for (const std::string& name : source->kernel_names()) {
    if (std::ranges::find(kWrong, name) != std::end(kWrong)) continue;
    Configuration configuration;
    configuration.params = small_params(*describe(*source, name, {}));
    const Result<lang::KernelInfo> info = describe(*source, name, configuration);
    ASSERT_TRUE(info) << source->render(info.error());
    for (const Sizes& sizes : odd_sizes(*info)) {
      std::string text = name;
      for (const auto& [dim, size] : sizes) text += " " + dim + "=" + std::to_string(size);
      SCOPED_TRACE(text);
      configuration.dims = sizes;
      const Result<ir::Kernel> kernel = instantiate(*source, name, configuration);
      ASSERT_TRUE(kernel) << source->render(kernel.error());
      const Execution result = execute(*kernel, sizes, 1);
      for (const Diagnostic& finding : result.outcome.findings) ADD_FAILURE() << source->render(finding);
      expect_reference(*info, *kernel, result, sizes);
    }
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& file) {
  const std::filesystem::path path(file.param);
  return path.parent_path().filename().string() + "_" + path.stem().string();
}
INSTANTIATE_TEST_SUITE_P(Files, Interpreted, testing::ValuesIn(tile_files()), test_name);

TEST(WrongExamples, AreRefusedAtTheirLine) {
  const std::map<std::string, std::string> lines = {{"race", "sum[0] = sum[0] + X[i]"},
                                                    {"out_of_bounds", "X[n + 1]"},
                                                    {"uninitialised", "acc = acc + x"},
                                                    {"communicating_iterations", "y[i] = y[i] + y[i - 1]"}};
  for (const auto& [name, line] : lines) {
    const Result<lang::Source> source = lang::load_source(std::string(TW_SOURCE_DIR) + "/examples/" + name + ".tile");
    ASSERT_TRUE(source) << render(source.error());
    const Sizes sizes = describe(*source, name, {})->examples[0];
    const Result<ir::Kernel> kernel = instantiate(*source, name, {.dims = sizes});
    ASSERT_TRUE(kernel);
    const Execution result = execute(*kernel, sizes, 1);
    ASSERT_FALSE(result.outcome.findings.empty()) << name;
    EXPECT_THAT(source->render(result.outcome.findings[0]), testing::HasSubstr(line));
  }
}

}  // namespace
}  // namespace tilewright::kernels
