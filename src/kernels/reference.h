// What follows `reference` in a kernel, computed: plain loops in float64, independent of every compiler part.
//
// The words are those of docs/grammar.md. Inputs are named tensors of doubles (the values the kernel reads, already
// rounded to their dtypes); scalars and dimensions are tensors without dimensions. Results are not rounded to the
// output's dtype. Does not: bound errors (interp/, bench/oracle), run fast.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "lang/elaborate.h"

namespace tilewright::kernels {

/// Dense, row-major.
struct DoubleTensor {
  std::vector<int64_t> shape;
  std::vector<double> data;

  static DoubleTensor zeros(std::vector<int64_t> shape);
  static DoubleTensor scalar(double v) { return {{}, {v}}; }
  int64_t size() const { return static_cast<int64_t>(data.size()); }
  /// The extent `from_end` dimensions before the last.
  int64_t extent(size_t from_end) const { return shape[shape.size() - 1 - from_end]; }
};

/// E1080, at the word, when a word is unknown or called wrongly, or a name is none of `names` (arguments, dimensions).
Status check_words(const lang::Reference& reference, std::span<const std::string> names);

/// E1080 names a word that is not known or does not fit its arguments.
Result<DoubleTensor> evaluate_reference(const lang::Reference& reference,
                                        const std::map<std::string, DoubleTensor>& arguments);

}  // namespace tilewright::kernels
