#include "bench/oracle/fuzz_shapes.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>

#include "bench/oracle/arguments.h"
#include "bench/oracle/reference_kernel.h"

namespace tilewright::bench {
namespace {

constexpr size_t kWanted = 26;
/// Extents around the tile sizes in use, and primes.
constexpr std::array<int64_t, 24> kExtents = {1,  2,  3,  7,  15, 16,  17,  31,  32,  33,  47,  63,
                                              64, 65, 97, 95, 96, 127, 128, 129, 131, 144, 191, 257};

class Shapes {
 public:
  Shapes(const Workload& like, uint64_t seed) : like_(like), random_(seed) {}

  std::vector<Workload> make() {
    switch (info(like_.operation).form) {
      case DimsForm::Gemm: gemm(); break;
      case DimsForm::Gemv: pairs("M", "K", 1); break;
      case DimsForm::Attention: attention(); break;
      case DimsForm::Rows:
        pairs("R", "C", like_.operation == Operation::TopK ? std::stoll(like_.variant.substr(1)) : 1);
        break;
      case DimsForm::Elements: elements(); break;
      case DimsForm::Kernel: question(); break;
    }
    return std::move(shapes_);
  }

 private:
  using Dims = std::vector<std::pair<const char*, int64_t>>;

  int64_t extent() { return kExtents[random_() % kExtents.size()]; }

  void add(const Dims& dims, std::vector<SequenceLengths> lengths = {}) {
    Workload shape = like_;
    for (const auto& [dim, value] : dims) shape.set_dim(dim, value);
    shape.lengths = std::move(lengths);
    if (validate(shape) && std::ranges::find(shapes_, shape) == shapes_.end()) shapes_.push_back(std::move(shape));
  }

  void gemm() {
    const int64_t step = like_.operation == Operation::GemmW4 ? std::stoll(like_.variant.substr(1)) : 1;
    const auto depth = [&](int64_t k) { return step == 1 ? k : std::max<int64_t>(1, k / 256) * step; };
    const auto gemm = [&](int64_t m, int64_t n, int64_t k) {
      add({{"B", std::min<int64_t>(like_.dim("B"), 3)}, {"M", m}, {"N", n}, {"K", depth(k)}});
    };
    gemm(1, 1, 1);
    gemm(1, 128, 64);
    gemm(128, 1, 64);
    gemm(64, 64, 1);
    gemm(127, 129, 65);
    gemm(129, 127, 63);
    gemm(128, 128, 128);
    gemm(17, 257, 31);
    gemm(3, 5, 7);
    gemm(97, 89, 83);
    gemm(4, 513, 255);
    gemm(145, 255, 257);
    gemm(33, 31, 1025);
    while (shapes_.size() < kWanted) gemm(extent(), extent(), extent());
  }

  void pairs(const char* first, const char* second, int64_t least) {
    constexpr std::array<std::pair<int64_t, int64_t>, 12> kFixed = {{{1, 1},
                                                                     {1, 128},
                                                                     {128, 1},
                                                                     {127, 129},
                                                                     {129, 127},
                                                                     {3, 1025},
                                                                     {1023, 2},
                                                                     {17, 31},
                                                                     {64, 64},
                                                                     {5, 4099},
                                                                     {97, 89},
                                                                     {2, 8191}}};
    for (const auto& [a, b] : kFixed) add({{first, a}, {second, std::max(b, least)}});
    while (shapes_.size() < kWanted)
      add({{first, extent()}, {second, std::max(extent() * (1 + static_cast<int64_t>(random_() % 9)), least)}});
  }

  void elements() {
    for (int64_t n :
         {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 1021, 1023, 1025, 4096, 4099, 10007, 65537})
      flat(n);
    while (shapes_.size() < kWanted) flat(1 + static_cast<int64_t>(random_() % 20000));
  }
  void flat(int64_t n) {
    Dims dims;
    for (size_t d = 0; d < like_.dims.size(); ++d)
      dims.emplace_back(like_.dims[d].first.c_str(), d + 1 == like_.dims.size() ? n : int64_t{2});
    add(dims);
  }

  /// What `name // 16` and `name % 16` in a shape ask of the dimension: to be a multiple of 16.
  int64_t step_of(const std::string& dim) const {
    int64_t step = 1;
    for (const QuestionTensor& tensor : like_.question.tensors) {
      for (const std::string& text : tensor.shape) {
        const size_t at = text.find(dim + " // ");
        if (at == std::string::npos) continue;
        const int64_t divisor = extent_value(text.substr(at + dim.size() + 4), {}).value_or(1);
        if (divisor > 0) step = std::lcm(step, divisor);
      }
    }
    return step;
  }
  int64_t extent_of(const std::string& dim, int64_t measured) {
    const int64_t step = step_of(dim);
    if (measured <= 64 && random_() % 4 == 0) return measured;
    return (extent() + step - 1) / step * step;
  }
  /// Shapes the expression itself cannot be computed at (heads that are no multiple, a window that does not fit) are no
  /// shapes of this question.
  bool is_computable(const Workload& shape) const {
    std::vector<HostTensor> inputs;
    for (const Argument& arg : arguments(shape)) {
      if (!arg.is_output()) inputs.push_back(zeros(arg.dtype, arg.shape));
    }
    return evaluate_question(shape, inputs, {}).failure.empty();
  }
  void question() {
    constexpr double kMostWork = 2e7;
    constexpr int kTries = 400;
    for (int i = 0; i < kTries && shapes_.size() < kWanted; ++i) {
      Workload shape = like_;
      for (auto& [dim, value] : shape.dims) value = i == 0 ? step_of(dim) : extent_of(dim, value);
      if (shape == like_ || !validate(shape) || std::ranges::find(shapes_, shape) != shapes_.end()) continue;
      if (minimal_cost(shape).flops + 20 * minimal_cost(shape).bytes > kMostWork || !is_computable(shape)) continue;
      shapes_.push_back(std::move(shape));
    }
  }

  void attention() {
    const int64_t group = std::max<int64_t>(1, like_.dim("HQ") / std::max<int64_t>(1, like_.dim("HKV")));
    const auto attention = [&](int64_t b, int64_t sq, int64_t sk, std::vector<SequenceLengths> lengths = {}) {
      add({{"B", b}, {"HQ", group * 2}, {"HKV", 2}, {"SQ", sq}, {"SK", sk}}, std::move(lengths));
    };
    attention(1, 1, 1);
    attention(2, 1, 129);
    attention(1, 128, 128);
    attention(1, 127, 129);
    attention(1, 129, 127);  // the first rows of a bottom-right mask see no key
    attention(1, 65, 33);
    attention(2, 31, 257);
    attention(1, 96, 191);
    attention(1, 3, 1021);
    attention(1, 97, 1);  // all rows but the last see no key
    attention(1, 17, 64);
    attention(3, 63, 65);
    if (!like_.lengths.empty()) {
      attention(2, 64, 64, {{64, 64}, {0, 0}});
      attention(2, 33, 97, {{1, 97}, {33, 5}});
      attention(3, 65, 129, {{65, 129}, {0, 129}, {64, 0}});
    }
    while (shapes_.size() < kWanted) attention(1 + static_cast<int64_t>(random_() % 2), extent(), extent());
  }

  const Workload& like_;
  std::mt19937_64 random_;
  std::vector<Workload> shapes_;
};

}  // namespace

std::vector<Workload> fuzz_shapes(const Workload& like, uint64_t seed) { return Shapes(like, seed).make(); }

}  // namespace tilewright::bench
