// Compares an array with what the interpreter expects of it.
//
// Floats: NaN equals NaN, -0 equals 0, otherwise |actual - value| must be within the bound (0 where nothing may
// differ); elements of unknown bound or tainted integers are counted and pass. Elements the reference never wrote are
// skipped.
#pragma once

#include <string>

#include "interp/interpreter.h"

namespace tilewright::interp {

struct Difference {
  int64_t compared = 0;
  int64_t mismatched = 0;
  int64_t tainted = 0;
  double worst_error = 0;  ///< largest |actual - value| of floats; infinity when one is infinite and the other is not
  double worst_ratio = 0;  ///< largest |actual - value| / bound among elements with a bound
  std::string first;       ///< "[3, 5] is 1.25, expected 1.5 within 1e-06"; empty when nothing is wrong
};

Difference compare(const TensorRef& actual, const Expected& expected);

}  // namespace tilewright::interp
