#include "interp/lane_ops.h"

#include <algorithm>

#include "interp/bounded.h"
#include "interp/scalar.h"
#include "target/cpu_dot.h"

namespace tilewright::interp {
namespace {

int64_t common_lanes(const Column& x, const Column& y) { return std::max(x.lanes, y.lanes); }

/// Calls f(index into x, index into y, index of the result); the three loops let the compiler vectorise each.
template <typename F>
void for_lanes(const Column& x, const Column& y, int64_t lanes, F f) {
  const auto n = static_cast<size_t>(lanes);
  if (x.lanes == lanes && y.lanes == lanes) {
    for (size_t i = 0; i < n; ++i) f(i, i, i);
  } else if (x.lanes == lanes) {
    for (size_t i = 0; i < n; ++i) f(i, size_t{0}, i);
  } else if (y.lanes == lanes) {
    for (size_t i = 0; i < n; ++i) f(size_t{0}, i, i);
  } else {
    for (size_t i = 0; i < n; ++i) f(size_t{0}, size_t{0}, i);
  }
}

/// f(double) on every lane, rounded to the compute type.
template <typename F>
void map_real(const Column& x, Column& out, F f) {
  const double* a = x.real.data();
  double* r = out.real.data();
  const auto n = static_cast<size_t>(x.lanes);
  if (out.dtype == DType::F32) {
    for (size_t i = 0; i < n; ++i) r[i] = static_cast<float>(f(a[i]));
  } else {
    for (size_t i = 0; i < n; ++i) r[i] = round_to(out.dtype, f(a[i]));
  }
}

template <typename F>
void map_reals(const Column& x, const Column& y, Column& out, F f) {
  const double* a = x.real.data();
  const double* b = y.real.data();
  double* r = out.real.data();
  if (out.dtype == DType::F32) {
    for_lanes(x, y, out.lanes, [&](size_t i, size_t j, size_t k) { r[k] = static_cast<float>(f(a[i], b[j])); });
  } else {
    for_lanes(x, y, out.lanes, [&](size_t i, size_t j, size_t k) { r[k] = round_to(out.dtype, f(a[i], b[j])); });
  }
}

template <typename F>
void map_integer(const Column& x, Column& out, F f) {
  for (size_t i = 0; i < static_cast<size_t>(x.lanes); ++i) out.integer[i] = wrap(out.dtype, f(x.integer[i]));
}

template <typename F>
void map_integers(const Column& x, const Column& y, Column& out, F f) {
  const int64_t* a = x.integer.data();
  const int64_t* b = y.integer.data();
  int64_t* r = out.integer.data();
  for_lanes(x, y, out.lanes, [&](size_t i, size_t j, size_t k) { r[k] = f(a[i], b[j]); });
  if (out.dtype == DType::I64 || out.dtype == DType::U64) return;
  if (out.dtype == DType::I32) {
    for (int64_t i = 0; i < out.lanes; ++i) r[i] = static_cast<int32_t>(r[i]);
    return;
  }
  for (int64_t i = 0; i < out.lanes; ++i) r[i] = wrap(out.dtype, r[i]);
}

Bounded bounded_at(const Column& x, int64_t i) { return {x.real_at(i), x.bound_at(i)}; }

void set(Column& out, int64_t i, Bounded b) {
  const auto k = static_cast<size_t>(i);
  out.real[k] = b.v;
  out.bound[k] = b.e;
}

void start_bounds(Column& out) { out.bound.assign(static_cast<size_t>(out.lanes), 0); }
void start_taint(Column& out) { out.taint.assign(static_cast<size_t>(out.lanes), 0); }

void join_taint(const Column& x, Column& out) {
  if (x.taint.empty()) return;
  if (out.taint.empty()) start_taint(out);
  for (int64_t i = 0; i < out.lanes; ++i) out.taint[static_cast<size_t>(i)] |= x.taint_at(i);
}

void unary_real(ir::UnaryOp op, const Column& x, Column& out) {
  switch (op) {
    case ir::UnaryOp::Neg: return map_real(x, out, [](double v) { return -v; });
    case ir::UnaryOp::Abs: return map_real(x, out, [](double v) { return std::fabs(v); });
    case ir::UnaryOp::Sqrt: return map_real(x, out, [](double v) { return std::sqrt(v); });
    case ir::UnaryOp::Floor: return map_real(x, out, [](double v) { return std::floor(v); });
    default: return map_real(x, out, [op](double v) { return evaluate(op, v); });
  }
}

void unary_integer(ir::UnaryOp op, const Column& x, Column& out) {
  if (op == ir::UnaryOp::Neg) return map_integer(x, out, [](int64_t v) { return ir::wrapping_mul(v, -1); });
  if (op == ir::UnaryOp::Abs) {
    const bool is_signed = is_signed_int(x.dtype);
    return map_integer(x, out, [is_signed](int64_t v) { return is_signed && v < 0 ? ir::wrapping_mul(v, -1) : v; });
  }
  if (op == ir::UnaryOp::Not) {
    const bool logical = x.dtype == DType::Bool;
    return map_integer(x, out, [logical](int64_t v) { return logical ? !v : ~v; });
  }
  map_integer(x, out, [](int64_t v) { return v; });
}

void is_nan(const Column& x, Mode mode, Column& out) {
  for (int64_t i = 0; i < x.lanes; ++i) out.integer[static_cast<size_t>(i)] = std::isnan(x.real_at(i));
  if (mode == Mode::Values || x.bound.empty()) return;
  start_taint(out);
  for (int64_t i = 0; i < x.lanes; ++i) out.taint[static_cast<size_t>(i)] = !(x.bound_at(i) < kUnknown);
}

void bitcast(const Column& x, Column& out) {
  for (int64_t i = 0; i < x.lanes; ++i) {
    const auto k = static_cast<size_t>(i);
    double real = 0;
    int64_t integer = 0;
    value_of_bits(out.dtype, bits_of(x.dtype, x.is_real() ? x.real[k] : 0, x.is_real() ? 0 : x.integer[k]), real,
                  integer);
    (out.is_real() ? out.real[k] = real : static_cast<double>(out.integer[k] = integer));
    if (x.bound_at(i) == 0 && !x.taint_at(i)) continue;
    if (out.is_real()) {
      if (out.bound.empty()) start_bounds(out);
      out.bound[k] = kUnknown;
    } else {
      if (out.taint.empty()) start_taint(out);
      out.taint[k] = 1;
    }
  }
}

void binary_real(ir::BinaryOp op, const Column& x, const Column& y, Column& out) {
  switch (op) {
    case ir::BinaryOp::Add: return map_reals(x, y, out, [](double a, double b) { return a + b; });
    case ir::BinaryOp::Sub: return map_reals(x, y, out, [](double a, double b) { return a - b; });
    case ir::BinaryOp::Mul: return map_reals(x, y, out, [](double a, double b) { return a * b; });
    case ir::BinaryOp::Div: return map_reals(x, y, out, [](double a, double b) { return a / b; });
    case ir::BinaryOp::Min: return map_reals(x, y, out, ir::min_or_nan);
    case ir::BinaryOp::Max: return map_reals(x, y, out, ir::max_or_nan);
    default: return map_reals(x, y, out, [op](double a, double b) { return evaluate(op, a, b); });
  }
}

void binary_integer(ir::BinaryOp op, const Column& x, const Column& y, Column& out) {
  const DType t = x.dtype;
  switch (op) {
    case ir::BinaryOp::Add: return map_integers(x, y, out, ir::wrapping_add);
    case ir::BinaryOp::Sub:
      return map_integers(x, y, out, [](int64_t a, int64_t b) {
        return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
      });
    case ir::BinaryOp::Mul: return map_integers(x, y, out, ir::wrapping_mul);
    case ir::BinaryOp::Div:
    case ir::BinaryOp::FloorDiv:
      return map_integers(x, y, out, [t](int64_t a, int64_t b) { return integer_floor_div(t, a, b); });
    case ir::BinaryOp::FloorMod:
      return map_integers(x, y, out, [t](int64_t a, int64_t b) { return integer_floor_mod(t, a, b); });
    case ir::BinaryOp::Min:
      return map_integers(x, y, out, [t](int64_t a, int64_t b) { return integer_less(t, b, a) ? b : a; });
    case ir::BinaryOp::Max:
      return map_integers(x, y, out, [t](int64_t a, int64_t b) { return integer_less(t, a, b) ? b : a; });
    case ir::BinaryOp::Pow:
      return map_integers(x, y, out, [](int64_t a, int64_t b) {
        int64_t result = 1;
        for (; b > 0; b >>= 1, a = ir::wrapping_mul(a, a)) {
          if (b & 1) result = ir::wrapping_mul(result, a);
        }
        return result;
      });
    case ir::BinaryOp::And: return map_integers(x, y, out, [](int64_t a, int64_t b) { return a & b; });
    case ir::BinaryOp::Or: return map_integers(x, y, out, [](int64_t a, int64_t b) { return a | b; });
    case ir::BinaryOp::Xor: return map_integers(x, y, out, [](int64_t a, int64_t b) { return a ^ b; });
    case ir::BinaryOp::Shl:
      return map_integers(x, y, out, [t](int64_t a, int64_t b) { return integer_shift_left(t, a, b); });
    case ir::BinaryOp::Shr:
      return map_integers(x, y, out, [t](int64_t a, int64_t b) { return integer_shift_right(t, a, b); });
  }
}

template <typename T, typename Less, typename Equal>
void compare_all(ir::CompareOp op, const T* a, const T* b, const Column& x, const Column& y, Column& out, Less less,
                 Equal equal) {
  int64_t* r = out.integer.data();
  const auto each = [&](auto holds) {
    for_lanes(x, y, out.lanes, [&](size_t i, size_t j, size_t k) { r[k] = holds(a[i], b[j]); });
  };
  switch (op) {
    case ir::CompareOp::Eq: return each(equal);
    case ir::CompareOp::Ne: return each([&](T p, T q) { return !equal(p, q); });
    case ir::CompareOp::Lt: return each(less);
    case ir::CompareOp::Le: return each([&](T p, T q) { return less(p, q) || equal(p, q); });
    case ir::CompareOp::Gt: return each([&](T p, T q) { return less(q, p); });
    case ir::CompareOp::Ge: return each([&](T p, T q) { return less(q, p) || equal(p, q); });
  }
}

void cast_from_real(const Column& x, Column& out, Mode mode) {
  const bool bounded = mode == Mode::Bounded && !x.bound.empty();
  for (int64_t i = 0; i < x.lanes; ++i) {
    out.integer[static_cast<size_t>(i)] = integer_from(out.dtype, x.real_at(i));
  }
  if (!bounded) return;
  start_taint(out);
  for (int64_t i = 0; i < x.lanes; ++i) {
    const double v = x.real_at(i), e = x.bound_at(i);
    const bool same = e == 0 || (e < kUnknown && integer_from(out.dtype, v - e) == integer_from(out.dtype, v + e) &&
                                 (out.dtype != DType::Bool || std::fabs(v) > e));
    out.taint[static_cast<size_t>(i)] = !same;
  }
}

void cast_real_to_real(const Column& x, Column& out, Mode mode) {
  const bool widens = bits(out.dtype) > bits(x.dtype) || (out.dtype == compute_type(x.dtype));
  if (mode == Mode::Values || x.bound.empty()) {
    if (widens) {
      std::copy(x.real.begin(), x.real.end(), out.real.begin());
    } else {
      map_real(x, out, [](double v) { return v; });
    }
    return;
  }
  start_bounds(out);
  const Precision p = Precision::of(out.dtype), from = Precision::of(x.dtype);
  for (int64_t i = 0; i < x.lanes; ++i) {
    Bounded b = bounded_at(x, i);
    if (out.dtype != x.dtype && may_be_infinite(b, from)) b.e = kUnknown;
    set(out, i, widens ? b : b.is_exact() ? exactly_rounded(b.v, p) : settle(b.v, b.e, p));
  }
}

}  // namespace

void unary(ir::UnaryOp op, const Column& x, DType result, Mode mode, Column& out) {
  out.reset(result, x.lanes);
  if (op == ir::UnaryOp::Bitcast) return bitcast(x, out);
  if (!x.is_real()) {
    unary_integer(op, x, out);
    return join_taint(x, out);
  }
  if (op == ir::UnaryOp::IsNan) return is_nan(x, mode, out);
  if (mode == Mode::Values) return unary_real(op, x, out);
  start_bounds(out);
  const Precision p = Precision::of(compute_type(result));
  for (int64_t i = 0; i < x.lanes; ++i) set(out, i, apply(op, bounded_at(x, i), p));
}

void binary(ir::BinaryOp op, const Column& x, const Column& y, Mode mode, Column& out) {
  out.reset(x.dtype, common_lanes(x, y));
  if (!x.is_real()) {
    binary_integer(op, x, y, out);
    join_taint(x, out);
    return join_taint(y, out);
  }
  if (mode == Mode::Values) return binary_real(op, x, y, out);
  start_bounds(out);
  const Precision p = Precision::of(compute_type(x.dtype));
  for (int64_t i = 0; i < out.lanes; ++i) set(out, i, apply(op, bounded_at(x, i), bounded_at(y, i), p));
}

void compare(ir::CompareOp op, const Column& x, const Column& y, Mode mode, Column& out) {
  out.reset(DType::Bool, common_lanes(x, y));
  if (!x.is_real()) {
    const DType t = x.dtype;
    compare_all(
        op, x.integer.data(), y.integer.data(), x, y, out, [t](int64_t a, int64_t b) { return integer_less(t, a, b); },
        [](int64_t a, int64_t b) { return a == b; });
    join_taint(x, out);
    return join_taint(y, out);
  }
  if (mode == Mode::Values || (x.bound.empty() && y.bound.empty())) {
    const double* a = x.real.data();
    const double* b = y.real.data();
    for_lanes(x, y, out.lanes, [&](size_t i, size_t j, size_t k) { out.integer[k] = evaluate(op, a[i], b[j]); });
    return;
  }
  start_taint(out);
  for (int64_t i = 0; i < out.lanes; ++i) {
    const BoundedBool b = compare(op, bounded_at(x, i), bounded_at(y, i));
    out.integer[static_cast<size_t>(i)] = b.v;
    out.taint[static_cast<size_t>(i)] = b.tainted;
  }
}

void select(const Column& condition, const Column& yes, const Column& no, Mode mode, Column& out) {
  out.reset(yes.dtype, std::max(condition.lanes, common_lanes(yes, no)));
  const bool bounded = mode == Mode::Bounded;
  if (out.is_real() && bounded && !(condition.taint.empty() && yes.bound.empty() && no.bound.empty()))
    start_bounds(out);
  if (!out.is_real() && bounded && !(condition.taint.empty() && yes.taint.empty() && no.taint.empty()))
    start_taint(out);
  for (int64_t i = 0; i < out.lanes; ++i) {
    const auto k = static_cast<size_t>(i);
    const bool take = condition.integer_at(i) != 0;
    const Column& chosen = take ? yes : no;
    const Column& other = take ? no : yes;
    if (out.is_real()) {
      out.real[k] = chosen.real_at(i);
      if (out.bound.empty()) continue;
      out.bound[k] = chosen.bound_at(i);
      if (!condition.taint_at(i)) continue;
      // Either side may be taken: the bound covers both.
      const double apart = std::fabs(chosen.real_at(i) - other.real_at(i)) + other.bound_at(i);
      out.bound[k] = std::isnan(apart) ? kUnknown : std::max(out.bound[k], apart);
    } else {
      out.integer[k] = chosen.integer_at(i);
      if (out.taint.empty()) continue;
      out.taint[k] =
          chosen.taint_at(i) || (condition.taint_at(i) && (other.taint_at(i) || other.integer_at(i) != out.integer[k]));
    }
  }
}

void cast(const Column& x, DType to, Mode mode, Column& out) {
  out.reset(to, x.lanes);
  if (x.is_real() && out.is_real()) return cast_real_to_real(x, out, mode);
  if (x.is_real()) return cast_from_real(x, out, mode);
  if (!out.is_real()) {
    map_integer(x, out, [](int64_t v) { return v; });
    return join_taint(x, out);
  }
  for (int64_t i = 0; i < x.lanes; ++i) {
    out.real[static_cast<size_t>(i)] = real_from(x.dtype, x.integer[static_cast<size_t>(i)], to);
  }
  if (x.taint.empty()) return;
  start_bounds(out);
  for (int64_t i = 0; i < x.lanes; ++i) out.bound[static_cast<size_t>(i)] = x.taint_at(i) ? kUnknown : 0;
}

void fma(const Column& a, const Column& b, const Column& c, Column& out) {
  out.reset(a.dtype, std::max(common_lanes(a, b), c.lanes));
  for (int64_t i = 0; i < out.lanes; ++i) {
    const double x = a.real_at(i), y = b.real_at(i), z = c.real_at(i);
    out.real[static_cast<size_t>(i)] =
        out.dtype == DType::F64 ? std::fma(x, y, z)
                                : std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
  }
}

void dot(const Column& a, const Column& b, const Column& sum, int64_t lanes, Column& out) {
  out.reset(DType::I32, lanes);
  const int64_t terms = 32 / bits(a.dtype);
  std::vector<int64_t> x(static_cast<size_t>(terms)), y(x.size());
  for (int64_t i = 0; i < lanes; ++i) {
    for (int64_t t = 0; t < terms; ++t) {
      x[static_cast<size_t>(t)] = a.integer_at(i * terms + t), y[static_cast<size_t>(t)] = b.integer_at(i * terms + t);
    }
    out.integer[static_cast<size_t>(i)] = target::dot_lane(x, y, static_cast<int32_t>(sum.integer_at(i)));
  }
}

void split_lanes(const Column& x, DType narrow, int64_t lanes, Column& out) {
  out.reset(narrow, lanes);
  const int64_t parts = bits(x.dtype) / bits(narrow);
  for (int64_t i = 0; i < lanes; ++i)
    out.integer[static_cast<size_t>(i)] = wrap(narrow, x.integer_at(i / parts) >> (i % parts * bits(narrow)));
}

}  // namespace tilewright::interp
