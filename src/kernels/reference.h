// What follows `reference` in a kernel, computed: plain loops, independent of every compiler part.
//
// The words are those of docs/grammar.md. Inputs are named tensors of doubles (the values the kernel reads, already
// rounded to their dtypes); scalars and dimensions are tensors without dimensions. Results are not rounded to the
// output's dtype. `evaluate_reference` gives float64 values alone, `evaluate_bounded` adds what a program in the
// declared types may differ by, `evaluate_declared` is such a program. Does not: judge (bench/oracle), run fast.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "lang/elaborate.h"

namespace tilewright::kernels {

/// Dense, row-major.
template <typename R>
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<R> data;

  static Tensor zeros(std::vector<int64_t> shape) {
    int64_t n = 1;
    for (const int64_t extent : shape) n *= extent;
    return {std::move(shape), std::vector<R>(static_cast<size_t>(n))};
  }
  static Tensor scalar(R v) { return {{}, {v}}; }
  int64_t size() const { return static_cast<int64_t>(data.size()); }
  /// The extent `from_end` dimensions before the last.
  int64_t extent(size_t from_end) const { return shape[shape.size() - 1 - from_end]; }
};
using DoubleTensor = Tensor<double>;
using NamedTensors = std::map<std::string, DoubleTensor>;

/// The types of a program: sums and functions are computed in one, results between two words may be kept in the other.
struct Precision {
  DType compute = DType::F32;
  DType kept = DType::F32;
};

struct BoundedTensor {
  DoubleTensor value;
  std::vector<double> bound;  ///< of the difference, per element; infinite where a comparison is nearer than rounding
};

/// E1080, at the word, when a word is unknown or called wrongly, or a name is none of `names` (arguments, dimensions).
Status check_words(const lang::Reference& reference, std::span<const std::string> names);

/// E1080 names a word that is not known or does not fit its arguments.
Result<DoubleTensor> evaluate_reference(const lang::Reference& reference, const NamedTensors& arguments);
Result<BoundedTensor> evaluate_bounded(const lang::Reference& reference, const NamedTensors& arguments,
                                       const Precision& precision);
Result<DoubleTensor> evaluate_declared(const lang::Reference& reference, const NamedTensors& arguments,
                                       const Precision& precision);

/// The text `lang::to_string` gives, read back. E1080.
Result<lang::Reference> parse_reference(std::string_view text);

}  // namespace tilewright::kernels
