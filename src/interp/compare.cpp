#include "interp/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

#include "interp/bounded.h"
#include "interp/scalar.h"

namespace tilewright::interp {
namespace {

/// Byte offset of a dense element, and its indices.
int64_t locate(const TensorRef& t, int64_t element, std::vector<int64_t>& at) {
  at.assign(t.shape.size(), 0);
  int64_t offset = 0, dense = 1;
  for (size_t d = t.shape.size(); d-- > 0;) {
    at[d] = element % t.shape[d];
    element /= t.shape[d];
    offset += at[d] * (t.strides.empty() ? dense : t.strides[d]);
    dense *= t.shape[d];
  }
  return offset * bytes(t.dtype);
}

/// `largest` is the type's largest finite value: beyond it, within the bound, lies infinity.
bool is_within(double actual, double value, double bound, double largest, Difference& out) {
  if (std::isnan(value)) return std::isnan(actual);
  if (actual == value) return true;
  if (std::isinf(actual) && std::signbit(actual) == std::signbit(value)) return std::fabs(value) + bound > largest;
  const double error = std::fabs(actual - value);
  out.worst_error = std::fmax(out.worst_error, error);
  if (bound > 0) out.worst_ratio = std::fmax(out.worst_ratio, error / bound);
  return error <= bound;
}

}  // namespace

Difference compare(const TensorRef& actual, const Expected& expected) {
  Difference out;
  const Column& want = expected.elements;
  const double largest = is_float(actual.dtype) ? largest_finite(actual.dtype) : 0;
  std::vector<int64_t> at;
  for (int64_t element = 0; element < want.lanes; ++element) {
    if (!expected.written[static_cast<size_t>(element)]) continue;
    ++out.compared;
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const char*>(actual.data) + locate(actual, element, at),
                static_cast<size_t>(bytes(actual.dtype)));
    double real = 0;
    int64_t integer = 0;
    value_of_bits(actual.dtype, bits, real, integer);
    const bool unknown = want.is_real() ? !(want.bound_at(element) < kUnknown) : want.taint_at(element);
    if (unknown) {
      ++out.tainted;
      continue;
    }
    // A bool is the byte 0 or 1, nothing else.
    const bool good = want.is_real()
                          ? is_within(real, want.real_at(element), want.bound_at(element), largest, out)
                          : integer == want.integer_at(element) && (actual.dtype != DType::Bool || bits <= 1);
    if (good) continue;
    if (out.mismatched++ > 0) continue;
    const std::string place = fmt::format("[{}]", fmt::join(at, ", "));
    out.first = want.is_real() ? fmt::format("{} is {:.9g}, expected {:.9g} within {:.3g}", place, real,
                                             want.real_at(element), want.bound_at(element))
                               : fmt::format("{} is {}, expected {}", place,
                                             actual.dtype == DType::Bool ? static_cast<int64_t>(bits) : integer,
                                             want.integer_at(element));
  }
  return out;
}

}  // namespace tilewright::interp
