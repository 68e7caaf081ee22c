// Every mathematical function as generated code, on this machine's vectors and on AVX2, against MPFR.
#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "codegen/cpu/compile.h"
#include "ir/builder.h"
#include "plan/cpu/expand_math.h"
#include "runtime/object_loader.h"
#include "tilewright/tilewright.h"

namespace tilewright::codegen {
namespace {

using namespace ir;

struct Case {
  const char* name;
  std::optional<UnaryOp> unary;  ///< none: pow
  double low, high;              ///< where the sampled arguments lie
  double ulps_f32, ulps_f64;     ///< as stated in expand_math.h
  double absolute = 0;           ///< allowed beside the ulps, in units of 2^-23 (2^-52)
  bool may_flush = false;
};

const Case kCases[] = {
    {"exp", UnaryOp::Exp, -104, 89, 2, 2, 0, true},
    {"exp2", UnaryOp::Exp2, -150, 128, 2, 2, 0, true},
    {"log", UnaryOp::Log, 0, 100, 2, 2},
    {"log2", UnaryOp::Log2, 0, 100, 2, 2},
    {"tanh", UnaryOp::Tanh, -12, 12, 4, 4},
    {"erf", UnaryOp::Erf, -7, 7, 4, 4},
    {"sigmoid", UnaryOp::Sigmoid, -104, 104, 4, 4, 0, true},
    {"rsqrt", UnaryOp::Rsqrt, 0, 1000, 2, 2},
    {"sin", UnaryOp::Sin, -32768, 32768, 2, 2, 1},
    {"cos", UnaryOp::Cos, -32768, 32768, 2, 2, 1},
    {"pow", std::nullopt, -20, 20, 2, 16, 0, true},
};

/// out[i] = f(x[i], y[i]) for `count` elements, a multiple of the lanes.
Kernel elementwise(const Case& c, DType dtype, int lanes, const target::Cpu& cpu) {
  Kernel kernel;
  kernel.name = c.name;
  kernel.phase = Phase::Vector;
  Builder b(kernel);
  Value* count = kernel.new_value(Type::scalar(DType::I64), "count");
  kernel.slots.push_back(count);
  Op* func = b.op(OpKind::Func, {}, FuncAttributes{.symbol = "k", .blocks = {b.constant_index(1)}});
  b.region_of(func, {Type::scalar(DType::I64)}, [&](const std::vector<Value*>&) {
    Value* x = b.argument(0);
    Value* y = b.argument(1);
    Value* out = b.argument(2);
    b.for_loop(b.constant_index(0), b.symbol(count), b.constant_index(lanes), [&](const std::vector<Value*>& i) {
      const MemoryAttributes at{.storage = dtype, .bytes = b.symbol(i[0]) * bytes(dtype)};
      Value* vx = b.vload(x, at, Type::scalar(dtype, lanes));
      Value* result =
          c.unary ? b.unary(*c.unary, vx) : b.binary(BinaryOp::Pow, vx, b.vload(y, at, Type::scalar(dtype, lanes)));
      b.vstore(out, at, result);
    });
  });
  plan::cpu::expand_math(kernel, cpu);
  return kernel;
}

template <typename T>
std::vector<T> run(const Kernel& kernel, const CpuOptions& options, const std::vector<T>& x, const std::vector<T>& y) {
  const auto object = compile_cpu(kernel, options);
  if (!object) {
    ADD_FAILURE() << render(object.error());
    return {};
  }
  auto loaded = runtime::LoadedObject::load(object->object);
  if (!loaded) {
    ADD_FAILURE() << "the object did not load";
    return {};
  }
  std::vector<T> out(x.size());
  const int64_t slots[] = {static_cast<int64_t>(x.size())};
  void* const pointers[] = {const_cast<T*>(x.data()), const_cast<T*>(y.data()), out.data()};
  tw_record record{};
  const tw_launch launch{slots, pointers, &record, nullptr, nullptr};
  alignas(64) char scratch[64];
  reinterpret_cast<tw_cpu_entry>(loaded->find("k"))(&launch, 0, 1, scratch);
  return out;
}

class Reference {
 public:
  Reference() { mpfr_inits2(200, x_, y_, t_, nullptr); }
  ~Reference() { mpfr_clears(x_, y_, t_, nullptr); }
  /// got - f(x, y), in units in the last place of the result type.
  double error_in_ulps(const Case& c, double x, double y, double got, int digits, int smallest_exponent) {
    evaluate(c, x, y);
    const double nearest = mpfr_get_d(t_, MPFR_RNDN);
    if (std::isnan(got) || std::isnan(nearest)) return std::isnan(got) && std::isnan(nearest) ? 0 : kBad;
    const double overflow = digits == 24 ? 0x1p128 : kBad;
    if (std::isinf(got))
      return std::fabs(nearest) >= overflow * (1 - 0x1p-24) && std::signbit(got) == std::signbit(nearest) ? 0 : kBad;
    if (std::isinf(nearest)) return kBad;
    const int exponent = std::max(nearest == 0 ? smallest_exponent : std::ilogb(nearest), smallest_exponent);
    mpfr_d_sub(y_, got, t_, MPFR_RNDN);
    return std::fabs(std::ldexp(mpfr_get_d(y_, MPFR_RNDN), digits - 1 - exponent));
  }
  static constexpr double kBad = std::numeric_limits<double>::infinity();

 private:
  void evaluate(const Case& c, double x, double y) {
    mpfr_set_d(x_, x, MPFR_RNDN);
    if (!c.unary) {
      mpfr_set_d(y_, y, MPFR_RNDN);
      mpfr_pow(t_, x_, y_, MPFR_RNDN);
      return;
    }
    switch (*c.unary) {
      case UnaryOp::Exp: mpfr_exp(t_, x_, MPFR_RNDN); return;
      case UnaryOp::Exp2: mpfr_exp2(t_, x_, MPFR_RNDN); return;
      case UnaryOp::Log: mpfr_log(t_, x_, MPFR_RNDN); return;
      case UnaryOp::Log2: mpfr_log2(t_, x_, MPFR_RNDN); return;
      case UnaryOp::Tanh: mpfr_tanh(t_, x_, MPFR_RNDN); return;
      case UnaryOp::Erf: mpfr_erf(t_, x_, MPFR_RNDN); return;
      case UnaryOp::Rsqrt:  // 1 / sqrt(x): the sign of a zero is kept
        mpfr_rec_sqrt(t_, x_, MPFR_RNDN);
        if (x == 0 && std::signbit(x)) mpfr_neg(t_, t_, MPFR_RNDN);
        return;
      case UnaryOp::Sin: mpfr_sin(t_, x_, MPFR_RNDN); return;
      case UnaryOp::Cos: mpfr_cos(t_, x_, MPFR_RNDN); return;
      case UnaryOp::Sigmoid:
        mpfr_neg(x_, x_, MPFR_RNDN);
        mpfr_exp(t_, x_, MPFR_RNDN);
        mpfr_add_ui(t_, t_, 1, MPFR_RNDN);
        mpfr_ui_div(t_, 1, t_, MPFR_RNDN);
        return;
      default: FAIL() << c.name;
    }
  }
  mpfr_t x_, y_, t_;
};

template <typename T>
void check(const Case& c, const CpuOptions& options, const target::Cpu& cpu) {
  constexpr bool kIsF32 = sizeof(T) == 4;
  const DType dtype = kIsF32 ? DType::F32 : DType::F64;
  const uint32_t seed = 7;
  SCOPED_TRACE(testing::Message() << c.name << " " << name(dtype) << " on " << options.cpu << ", seed " << seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(c.low, c.high), exponent(-30, 3);
  std::vector<T> x, y;
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> edges = {0.0,       -0.0,      1,           -1,           0.5,   2,         3,
                                     -3,        inf,       -inf,        std::nan(""), 1e-40, -1e-40,    0x1p-149,
                                     1e-300,    0.625,     1 + 0x1p-23, 1e30,         -1e30, 88.722839, 88.72284,
                                     -87.33655, 127.99999, -125.99999,  -126};
  for (double a : edges) {
    for (double b : edges) x.push_back(static_cast<T>(a)), y.push_back(static_cast<T>(b));
  }
  while (x.size() < 24 * 1024) {
    const double a =
        random() % 2 ? uniform(random) : std::copysign(std::exp2(exponent(random)), c.low < 0 ? uniform(random) : 1.0);
    x.push_back(static_cast<T>(a)),
        y.push_back(static_cast<T>(random() % 4 ? uniform(random) : std::round(uniform(random))));
  }
  const int lanes = options.vector_bits / 8 / static_cast<int>(sizeof(T));
  while (x.size() % static_cast<size_t>(lanes) != 0) x.push_back(1), y.push_back(1);
  const std::vector<T> got = run<T>(elementwise(c, dtype, lanes, cpu), options, x, y);
  ASSERT_EQ(got.size(), x.size());
  Reference reference;
  const double limit = kIsF32 ? c.ulps_f32 : c.ulps_f64;
  const double smallest = std::numeric_limits<T>::min();
  double worst = 0, worst_x = 0, worst_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (c.absolute > 0 && !std::isnan(x[i]) && std::fabs(x[i]) > 32768) {
      EXPECT_TRUE(std::isinf(x[i]) ? std::isnan(got[i]) : std::fabs(got[i]) <= 1) << x[i];
      continue;
    }
    double error = reference.error_in_ulps(c, x[i], y[i], got[i], kIsF32 ? 24 : 53, kIsF32 ? -126 : -1022);
    if (c.may_flush && got[i] == 0 && error <= smallest / std::numeric_limits<T>::denorm_min()) error = 0;
    if (c.absolute > 0 && error * std::ldexp(1.0, std::max(std::ilogb(got[i]), -200)) <= c.absolute) error = 0;
    if (error > worst) worst = error, worst_x = x[i], worst_y = y[i];
  }
  EXPECT_LE(worst, limit) << "at x = " << worst_x << ", y = " << worst_y;
  testing::Test::RecordProperty(std::string(c.name) + (kIsF32 ? "_f32" : "_f64"), std::to_string(worst));
}

class MathAccuracy : public testing::TestWithParam<Case> {};

TEST_P(MathAccuracy, StaysWithinTheStatedError) {
  const auto avx2 = target::parse_cpu("x86-64-v3");
  ASSERT_TRUE(avx2.has_value());
  const std::pair<CpuOptions, target::Cpu> machines[] = {{CpuOptions{}, *avx2},
                                                         {host_cpu_options(), target::host_cpu()}};
  for (const auto& [options, cpu] : machines) {
    check<float>(GetParam(), options, cpu);
    check<double>(GetParam(), options, cpu);
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, MathAccuracy, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tilewright::codegen
