// A column: one SSA value for many lanes at once (iterations of a `parallel`, lanes of a vector, elements of a tile).
//
// Floats live in `real` (as double; every f32 and storage float is exact in it), integers and bool in `integer`. A
// column of one lane is uniform: it stands for every lane. In bounded mode `bound` holds, per float, how far any
// correct implementation may be from `real` (infinity: nothing is known), and `taint` marks integers that some correct
// implementation may compute differently. Either may be empty, which means all zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/dtype.h"

namespace tilewright::interp {

enum class Mode : uint8_t { Values, Bounded };

struct Column {
  DType dtype = DType::F32;
  int64_t lanes = 1;
  std::vector<double> real;
  std::vector<double> bound;
  std::vector<int64_t> integer;
  std::vector<uint8_t> taint;

  bool is_real() const { return is_float(dtype); }
  bool is_uniform() const { return lanes == 1; }

  /// Sets type and length; the values are unspecified afterwards, exact and untainted.
  void reset(DType type, int64_t count) {
    dtype = type;
    lanes = count;
    (is_real() ? real.resize(static_cast<size_t>(count)) : integer.resize(static_cast<size_t>(count)));
    bound.clear();
    taint.clear();
  }
  static Column of_integer(DType type, int64_t v) {
    Column c;
    c.reset(type, 1);
    c.integer[0] = v;
    return c;
  }
  static Column of_real(DType type, double v) {
    Column c;
    c.reset(type, 1);
    c.real[0] = v;
    return c;
  }

  double real_at(int64_t lane) const { return real[lanes == 1 ? 0 : static_cast<size_t>(lane)]; }
  int64_t integer_at(int64_t lane) const { return integer[lanes == 1 ? 0 : static_cast<size_t>(lane)]; }
  double bound_at(int64_t lane) const { return bound.empty() ? 0 : bound[lanes == 1 ? 0 : static_cast<size_t>(lane)]; }
  bool is_tainted() const {
    return std::any_of(taint.begin(), taint.end(), [](uint8_t t) { return t != 0; });
  }
  bool taint_at(int64_t lane) const { return !taint.empty() && taint[lanes == 1 ? 0 : static_cast<size_t>(lane)]; }
};

/// Repeats a uniform column to `count` lanes; leaves any other as it is.
void widen(Column& column, int64_t count);

/// out[lane] = mask[lane] ? yes[lane] : out[lane]; `out` must have mask's length or be uniform.
void merge(Column& out, const Column& yes, const std::vector<uint8_t>& mask);

}  // namespace tilewright::interp
