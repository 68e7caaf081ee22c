#include "interp/reductions.h"

#include <algorithm>

#include "interp/bounded.h"
#include "interp/lane_ops.h"
#include "interp/scalar.h"

namespace tilewright::interp {
namespace {

/// The terms of one output: n lanes `stride` apart, after the old value when there is one.
struct Line {
  const Column& x;
  int64_t first;
  int64_t stride;
  int64_t count;

  int64_t lane(int64_t k) const { return first + k * stride; }
  Bounded term(int64_t k) const { return {x.real_at(lane(k)), x.bound_at(lane(k))}; }
  int64_t integer(int64_t k) const { return x.integer_at(lane(k)); }
};

/// γ-bound of a sum or product tree of n terms, whatever its order.
double gamma(int64_t n, double u) {
  const double nu = static_cast<double>(n) * u;
  return nu < 1 ? nu / (1 - nu) : kUnknown;
}

Bounded finish_sum(double v, double magnitude, double spread, bool unknown, int64_t n, const Precision& p) {
  if (!std::isfinite(v) || unknown) return certain_unless(v, unknown);
  const double e = spread + (n > 1 ? gamma(n, p.u) * (magnitude + spread) : 0);
  const Bounded sum = settle(v, e, p, 0, 0);
  // Some order may overflow on the way when the magnitudes do.
  if (magnitude + spread > p.largest && std::isfinite(sum.v) && std::fabs(v) < magnitude) return {v, kUnknown};
  return sum;
}

/// Adds terms one at a time; rigorous for any order.
class BoundedSum {
 public:
  void add(Bounded x) {
    sum_ += x.v;
    magnitude_ += std::fabs(x.v);
    unknown_ |= x.is_unknown();
    spread_ += x.e;
    ++count_;
  }
  Bounded result(const Precision& p) const {
    if (count_ == 1 && spread_ == 0) return {sum_, 0};
    return finish_sum(sum_, magnitude_, spread_, unknown_, count_, p);
  }

 private:
  double sum_ = 0, magnitude_ = 0, spread_ = 0;
  bool unknown_ = false;
  int64_t count_ = 0;
};

class BoundedProduct {
 public:
  void multiply(Bounded x) {
    product_ *= x.v;
    high_ *= std::fabs(x.v) + x.e;
    unknown_ |= x.is_unknown();
    moving_ |= x.e > 0;
    ++count_;
  }
  Bounded result(const Precision& p) const {
    if (!std::isfinite(product_)) return certain_unless(product_, unknown_ || moving_);
    if (unknown_ || !(high_ < p.largest)) return {product_, kUnknown};
    if (count_ == 1 && !moving_) return {product_, 0};
    const double grown = high_ * (1 + gamma(count_, p.u));
    return settle(product_, std::max(grown - std::fabs(product_), 0.0) + static_cast<double>(count_) * p.smallest, p,
                  0);
  }

 private:
  double product_ = 1, high_ = 1;
  bool unknown_ = false, moving_ = false;
  int64_t count_ = 0;
};

Bounded reduce_bounded(ir::ReduceKind kind, const Line& line, const Bounded* old, const Precision& p) {
  BoundedSum sum;
  BoundedProduct product;
  Bounded extreme;
  bool first = true;
  const auto join = [&](Bounded x) {
    switch (kind) {
      case ir::ReduceKind::Sum:
      case ir::ReduceKind::AbsSum: sum.add(x); break;
      case ir::ReduceKind::Prod: product.multiply(x); break;
      case ir::ReduceKind::Max:
      case ir::ReduceKind::AbsMax: extreme = first ? x : maximum(extreme, x); break;
      default: extreme = first ? x : minimum(extreme, x); break;
    }
    first = false;
  };
  const bool absolute = kind == ir::ReduceKind::AbsSum || kind == ir::ReduceKind::AbsMax;
  if (old) join({old->v, old->e});
  for (int64_t k = 0; k < line.count; ++k) {
    Bounded x = line.term(k);
    if (absolute) x.v = std::fabs(x.v);
    join(x);
  }
  if (kind == ir::ReduceKind::Sum || kind == ir::ReduceKind::AbsSum) return sum.result(p);
  return kind == ir::ReduceKind::Prod ? product.result(p) : extreme;
}

double identity(ir::ReduceKind kind) {
  switch (kind) {
    case ir::ReduceKind::Prod: return 1;
    case ir::ReduceKind::Max: return -kUnknown;
    case ir::ReduceKind::Min: return kUnknown;
    default: return 0;
  }
}

double join_real(ir::ReduceKind kind, double acc, double x) {
  switch (kind) {
    case ir::ReduceKind::Sum: return acc + x;
    case ir::ReduceKind::AbsSum: return acc + std::fabs(x);
    case ir::ReduceKind::Prod: return acc * x;
    case ir::ReduceKind::Max: return ir::max_or_nan(acc, x);
    case ir::ReduceKind::AbsMax: return ir::max_or_nan(acc, std::fabs(x));
    default: return ir::min_or_nan(acc, x);
  }
}

double reduce_values(ir::ReduceKind kind, const Line& line, const double* old, DType type) {
  double acc = old ? *old : identity(kind);
  for (int64_t k = 0; k < line.count; ++k) {
    const double next = join_real(kind, acc, line.x.real_at(line.lane(k)));
    acc = type == DType::F32 ? static_cast<float>(next) : next;
  }
  return acc;
}

int64_t integer_identity(ir::ReduceKind kind, DType type) {
  switch (kind) {
    case ir::ReduceKind::Prod:
    case ir::ReduceKind::All: return 1;
    case ir::ReduceKind::And: return wrap(type, -1);
    case ir::ReduceKind::Max: return lowest_integer(type);
    case ir::ReduceKind::Min: return highest_integer(type);
    default: return 0;
  }
}

int64_t join_integer(ir::ReduceKind kind, DType type, int64_t acc, int64_t x) {
  const int64_t magnitude = x < 0 && type != DType::U64 ? wrap(type, ir::wrapping_mul(x, -1)) : x;
  switch (kind) {
    case ir::ReduceKind::Sum: return ir::wrapping_add(acc, x);
    case ir::ReduceKind::AbsSum: return ir::wrapping_add(acc, magnitude);
    case ir::ReduceKind::Prod: return ir::wrapping_mul(acc, x);
    case ir::ReduceKind::Max: return integer_less(type, acc, x) ? x : acc;
    case ir::ReduceKind::AbsMax: return integer_less(type, acc, magnitude) ? magnitude : acc;
    case ir::ReduceKind::Min: return integer_less(type, x, acc) ? x : acc;
    case ir::ReduceKind::And: return acc & x;
    case ir::ReduceKind::Or: return acc | x;
    case ir::ReduceKind::Xor: return acc ^ x;
    case ir::ReduceKind::Any: return acc || x;
    case ir::ReduceKind::All: return acc && x;
  }
  return acc;
}

int64_t reduce_integers(ir::ReduceKind kind, const Line& line, const int64_t* old, DType type, bool& tainted) {
  int64_t acc = integer_identity(kind, type);
  if (old) acc = kind == ir::ReduceKind::AbsMax && *old < 0 && type != DType::U64 ? 0 : *old;
  for (int64_t k = 0; k < line.count; ++k) {
    acc = join_integer(kind, type, acc, line.integer(k));
    tainted |= line.x.taint_at(line.lane(k));
  }
  return wrap(type, acc);
}

/// Calls f(result lane, line) for every output.
template <typename F>
void for_lines(const Column& x, Axis axis, F f) {
  for (int64_t o = 0; o < axis.outer; ++o) {
    for (int64_t i = 0; i < axis.inner; ++i) {
      f(o * axis.inner + i, Line{x, o * axis.extent * axis.inner + i, axis.inner, axis.extent});
    }
  }
}

void set_taint(Column& out, int64_t lane) {
  if (out.taint.empty()) out.taint.assign(static_cast<size_t>(out.lanes), 0);
  out.taint[static_cast<size_t>(lane)] = 1;
}

/// x as the accumulator type sees it; a copy only when a conversion is needed.
const Column& converted(const Column& x, DType type, Mode mode, Column& storage) {
  if (x.dtype == type) return x;
  cast(x, type, mode, storage);
  return storage;
}

bool extreme_precedes(bool is_max, DType type, const Line& line, int64_t k, int64_t best) {
  if (!line.x.is_real()) {
    return is_max ? integer_less(type, line.integer(best), line.integer(k))
                  : integer_less(type, line.integer(k), line.integer(best));
  }
  const double x = line.term(k).v, b = line.term(best).v;
  if (std::isnan(b)) return false;
  if (std::isnan(x)) return true;
  return is_max ? x > b : x < b;
}

/// Whether another element may win in some implementation.
bool is_contested(bool is_max, const Line& line, int64_t best) {
  const Bounded b = line.term(best);
  for (int64_t k = 0; k < line.count; ++k) {
    const Bounded x = line.term(k);
    if (k == best || (x.is_exact() && b.is_exact())) continue;
    if (x.is_unknown() || b.is_unknown()) return true;
    const double ahead = is_max ? x.v - b.v : b.v - x.v;
    if (ahead + x.e + b.e >= 0) return true;
  }
  return false;
}

}  // namespace

DType accumulator_type(ir::ReduceKind kind, DType from, DType to) {
  if (kind == ir::ReduceKind::Any || kind == ir::ReduceKind::All) return DType::Bool;
  if (!is_float(to)) return to;
  return from == DType::F64 ? DType::F64 : compute_type(to);
}

void reduce(ir::ReduceKind kind, const Column& x, Axis axis, const Column* joined, DType to, Mode mode, Column& out) {
  const DType type = accumulator_type(kind, x.dtype, to);
  Column source_storage, old_storage, acc;
  const Column& source = converted(x, type, mode, source_storage);
  const Column* old = joined ? &converted(*joined, type, mode, old_storage) : nullptr;
  acc.reset(type, axis.outer * axis.inner);
  if (acc.is_real() && mode == Mode::Bounded) acc.bound.assign(static_cast<size_t>(acc.lanes), 0);
  const Precision p = Precision::of(type);
  for_lines(source, axis, [&](int64_t lane, const Line& line) {
    const auto k = static_cast<size_t>(lane);
    if (!acc.is_real()) {
      const int64_t before = old ? old->integer_at(lane) : 0;
      bool tainted = old && old->taint_at(lane);
      acc.integer[k] = reduce_integers(kind, line, old ? &before : nullptr, type, tainted);
      if (tainted) set_taint(acc, lane);
    } else if (mode == Mode::Bounded) {
      const Bounded before = old ? Bounded{old->real_at(lane), old->bound_at(lane)} : Bounded{};
      const Bounded b = reduce_bounded(kind, line, old ? &before : nullptr, p);
      acc.real[k] = b.v, acc.bound[k] = b.e;
    } else {
      const double before = old ? old->real_at(lane) : 0;
      acc.real[k] = reduce_values(kind, line, old ? &before : nullptr, type);
    }
  });
  cast(acc, to, mode, out);
}

void reduce_arg(bool is_max, const Column& x, Axis axis, Mode mode, Column& value, Column& index) {
  value.reset(x.dtype, axis.outer * axis.inner);
  index.reset(DType::I64, axis.outer * axis.inner);
  const bool bounded = mode == Mode::Bounded && x.is_real() && !x.bound.empty();
  if (bounded) value.bound.assign(static_cast<size_t>(value.lanes), 0);
  for_lines(x, axis, [&](int64_t lane, const Line& line) {
    const auto at = static_cast<size_t>(lane);
    int64_t best = 0;
    bool tainted = false;
    for (int64_t k = 0; k < line.count; ++k) {
      if (k > 0 && extreme_precedes(is_max, x.dtype, line, k, best)) best = k;
      tainted |= x.taint_at(line.lane(k));
    }
    index.integer[at] = best;
    if (x.is_real()) {
      value.real[at] = line.term(best).v;
      if (bounded) {
        const ir::ReduceKind kind = is_max ? ir::ReduceKind::Max : ir::ReduceKind::Min;
        value.bound[at] = reduce_bounded(kind, line, nullptr, Precision::of(compute_type(x.dtype))).e;
        tainted = is_contested(is_max, line, best);
      }
    } else {
      value.integer[at] = line.integer(best);
      if (tainted) set_taint(value, lane);
    }
    if (tainted) set_taint(index, lane);
  });
}

void scan(ir::ScanKind kind, const Column& x, Axis axis, DType to, Mode mode, Column& out) {
  const ir::ReduceKind step = kind == ir::ScanKind::Sum    ? ir::ReduceKind::Sum
                              : kind == ir::ScanKind::Prod ? ir::ReduceKind::Prod
                                                           : ir::ReduceKind::Max;
  const DType type = accumulator_type(step, x.dtype, to);
  Column storage, acc;
  const Column& source = converted(x, type, mode, storage);
  acc.reset(type, source.lanes);
  const bool bounded = acc.is_real() && mode == Mode::Bounded;
  if (bounded) acc.bound.assign(static_cast<size_t>(acc.lanes), 0);
  const Precision p = Precision::of(type);
  for_lines(source, axis, [&](int64_t, const Line& line) {
    BoundedSum sum;
    BoundedProduct product;
    Bounded extreme;
    double real = identity(step);
    int64_t integer = integer_identity(step, type);
    bool tainted = false;
    for (int64_t k = 0; k < line.count; ++k) {
      const auto at = static_cast<size_t>(line.lane(k));
      if (!acc.is_real()) {
        acc.integer[at] = integer = wrap(type, join_integer(step, type, integer, line.integer(k)));
        tainted |= source.taint_at(line.lane(k));
        if (tainted) set_taint(acc, line.lane(k));
      } else if (bounded) {
        const Bounded t = line.term(k);
        sum.add(t), product.multiply(t);
        extreme = k == 0 ? t : maximum(extreme, t);
        const Bounded b = kind == ir::ScanKind::Sum    ? sum.result(p)
                          : kind == ir::ScanKind::Prod ? product.result(p)
                                                       : extreme;
        acc.real[at] = b.v, acc.bound[at] = b.e;
      } else {
        real = join_real(step, real, source.real_at(line.lane(k)));
        acc.real[at] = real = type == DType::F32 ? static_cast<float>(real) : real;
      }
    }
  });
  cast(acc, to, mode, out);
}

}  // namespace tilewright::interp
