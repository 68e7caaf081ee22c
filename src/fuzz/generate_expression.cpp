#include <array>
#include <cmath>

#include "fuzz/generator.h"

namespace tilewright::fuzz {
namespace {

using ir::BinaryOp;
using ir::CompareOp;
using ir::Index;
using ir::UnaryOp;
using ir::Value;

constexpr double kBoundedLimit = 1000;

double digits(DType dtype) {
  switch (dtype) {
    case DType::F64: return std::ldexp(1.0, 53);
    case DType::F32: return std::ldexp(1.0, 24);
    case DType::F16: return std::ldexp(1.0, 11);
    case DType::BF16: return std::ldexp(1.0, 8);
    case DType::E4M3: return std::ldexp(1.0, 4);
    case DType::E5M2: return std::ldexp(1.0, 3);
    default: return std::ldexp(1.0, 62);
  }
}

double needed(Range r) { return r.limit * std::ldexp(1.0, r.fraction); }

}  // namespace

/// The largest range whose every value a dtype holds, in units (fraction 0).
Range Generator::room_of(DType dtype) const { return {is_exact_case() ? digits(dtype) : kBoundedLimit, 0}; }

Term Generator::convert(Term x, DType to) {
  if (x.dtype() == to) return x;
  const bool from_integer = !is_float(x.dtype());
  const int width = bits(x.dtype());
  // An address-sized value in a bounded case would drown everything else.
  if (from_integer && is_float(to) && width > 8 && !is_exact_case()) {
    Value* masked = b_.binary(BinaryOp::And, x.value, b_.integer(x.dtype(), 63));
    return {b_.cast(masked, to), {63, 0}};
  }
  Term out = {b_.cast(x.value, to), x.range};
  if (from_integer) out.range = {x.dtype() == DType::Bool ? 1 : std::ldexp(1.0, width), 0};
  return out;
}

/// Rounds down and clamps a float until it is a multiple of 2^-room.fraction within room.limit.
Term Generator::fit(Term x, Range room) {
  const DType type = x.dtype();
  if (is_exact_case() && x.range.fraction > room.fraction) {
    x.value = b_.unary(UnaryOp::Floor, x.value);
    x.range = {x.range.limit + 1, 0};
  }
  if (x.range.limit > room.limit) {
    const double limit = std::floor(room.limit);
    x.value = b_.binary(BinaryOp::Max, b_.binary(BinaryOp::Min, x.value, b_.real(type, limit)), b_.real(type, -limit));
    x.range.limit = limit;
  }
  return x;
}

/// Leaves x alone when `dtype` holds every value it may have; makes it a clamped integer otherwise.
Term Generator::fit_dtype(Term x, DType dtype) {
  if (needed(x.range) <= room_of(dtype).limit) return x;
  return fit(x, room_of(dtype));
}

/// A scalar argument of the kernel, an earlier one or a new one.
Term Generator::scalar_argument() {
  auto& scalars = out_.kernel.scalars;
  if (scalars.size() < 3) {
    const DType type = c_.one_of(std::array{DType::F32, DType::I32, DType::I64, DType::F64, DType::U8});
    const int v = 1 + c_.pick(4);
    scalars.push_back({.value = out_.kernel.new_value(ir::Type::scalar(type), "s" + std::to_string(scalars.size()))});
    out_.scalars.push_back(is_float(type) ? ir::ConstantAttributes{.real = static_cast<double>(v)}
                                          : ir::ConstantAttributes{.integer = v});
    return {scalars.back().value, {4, 0}};
  }
  return {c_.one_of(scalars).value, {4, 0}};
}

/// A private array filled and summed up by loops of this iteration.
Term Generator::accumulated() {
  const int64_t length = 1 + c_.pick(4);
  Value* local = b_.alloc(ir::MemorySpace::Local, DType::I32, {length}, "local");
  Value* sum = b_.alloc(ir::MemorySpace::Var, DType::I32, {}, "sum");
  b_.store(sum, {}, b_.integer(DType::I32, 0));
  const Index zero = b_.constant_index(0), one = b_.constant_index(1);
  b_.for_loop(zero, b_.constant_index(length), one, [&](const std::vector<Value*>& v) {
    b_.store(local, {b_.symbol(v[0])}, b_.cast(b_.index_value(b_.symbol(v[0]) * 3 + iteration_[0]), DType::I32));
  });
  const Index trips = c_.chance(50) ? floormod(iteration_[0], b_.constant_index(length)) : b_.constant_index(length);
  b_.for_loop(zero, trips, one, [&](const std::vector<Value*>& v) {
    b_.store(sum, {}, b_.binary(BinaryOp::Add, b_.load(sum, {}), b_.load(local, {b_.symbol(v[0])})));
  });
  return {b_.load(sum, {}), {}};
}

Term Generator::leaf() {
  const int choice = c_.pick(12);
  if (choice == 10) return scalar_argument();
  if (choice == 11) return accumulated();
  if (choice >= 8) {
    const DType type = c_.one_of(std::array{DType::F32, DType::I32, DType::F64, DType::I64, DType::U8});
    const int v = c_.pick(9) - (is_unsigned_int(type) ? 0 : 4);
    if (is_float(type)) return {b_.real(type, v), {4, 0}};
    return {b_.integer(type, v), {}};
  }
  if (choice == 7) {
    const Index i = c_.one_of(iteration_);
    if (c_.chance(30)) {  // of negative numbers as well
      const Index low = b_.constant_index(c_.pick(9)) - i, by = b_.constant_index(c_.one_of(std::array{3, 2, 5, 7}));
      return {b_.index_value(c_.chance(50) ? floordiv(low, by) : floormod(low, by)), {}};
    }
    return {b_.index_value(i + b_.symbol(bx_) * c_.pick(3)), {}};
  }
  // A tile read at this iteration's place; vectors are read at the row or column.
  std::vector<std::pair<const Tile*, std::vector<Index>>> readable;
  for (const Tile& t : tiles_) {
    if (t.shape == iteration_shape_) readable.push_back({&t, iteration_});
    if (iteration_shape_ != Shape::Full) continue;
    if (t.shape == Shape::Row) readable.push_back({&t, {iteration_[0]}});
    if (t.shape == Shape::Column) readable.push_back({&t, {iteration_[1]}});
    // Any other element of a shared tile that this `parallel` does not write.
    if (t.shape == Shape::Full && !t.is_fragment && &t != written_) {
      readable.push_back({&t, {b_.constant_index(block_m_ - 1) - iteration_[0], iteration_[1]}});
      readable.push_back({&t, {computed_row(), iteration_[1]}});
    }
  }
  // A new tile is in the pool before its first store: it cannot be read yet.
  std::erase_if(readable,
                [&](const auto& r) { return r.first == written_ && written_ == &tiles_.back() && inside_loop_ == 0; });
  if (readable.empty()) return {b_.index_value(iteration_[0]), {}};
  const auto& [tile, indices] =
      readable[readable.size() - 1 - static_cast<size_t>(c_.pick(static_cast<int>(readable.size())))];
  return {b_.load(tile->buffer, indices), tile->range};
}

/// A row of a tile by a number that is computed, not an expression of loop variables.
Index Generator::computed_row() {
  const DType type = c_.chance(50) ? DType::I32 : DType::I64;
  Value* const row = b_.cast(b_.index_value(iteration_[0] * 3 + b_.symbol(bx_)), type);
  Value* const inside = b_.binary(ir::BinaryOp::FloorMod, row, b_.integer(type, block_m_));
  return b_.symbol(b_.cast(inside, DType::I64));  // as indices must be
}

Term Generator::condition(int depth) {
  if (c_.chance(is_focus(Focus::Masks) ? 100 : 30)) {
    const Index i = iteration_[0], limit = b_.symbol(m_) - b_.symbol(by_) * block_m_ - c_.pick(4);
    return {b_.index_condition(c_.chance(50) ? less(i, limit)
                                             : equal(floormod(i, b_.constant_index(2)), b_.constant_index(0))),
            {}};
  }
  const Term x = expression(depth);
  if (x.dtype() == DType::Bool) return x;
  const Term y = expression_of(x.dtype(), depth);
  const CompareOp op =
      c_.one_of(std::array{CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge, CompareOp::Eq, CompareOp::Ne});
  Term out = {b_.compare(op, x.value, y.value), {}};
  if (c_.chance(20)) out.value = b_.unary(UnaryOp::Not, out.value);
  return out;
}

Term Generator::expression_of(DType dtype, int depth) {
  Term x = convert(expression(depth), dtype);
  return is_float(dtype) ? fit(x, {256, 3}) : x;
}

Term Generator::expression(int depth) {
  Term x = leaf();
  if (depth <= 0) return x;
  if (c_.chance(15)) {
    const Term when = condition(0);
    if (x.dtype() == DType::Bool) return {b_.select(when.value, x.value, condition(0).value), {}};
    const Term y = expression_of(x.dtype(), depth - 1);
    const Range joined = {std::max(x.range.limit, y.range.limit), std::max(x.range.fraction, y.range.fraction)};
    return {b_.select(when.value, x.value, y.value), joined};
  }
  if (x.dtype() == DType::Bool) {
    const BinaryOp op = c_.one_of(std::array{BinaryOp::And, BinaryOp::Or, BinaryOp::Xor});
    return {b_.binary(op, x.value, condition(depth - 1).value), {}};
  }
  return is_float(x.dtype()) ? float_operation(x, depth) : integer_operation(x, depth);
}

Term Generator::float_operation(Term x, int depth) {
  const DType type = x.dtype();
  if (!is_exact_case() && options_.math && c_.chance(35)) return math(x);
  const auto small = [&](Term t) { return fit(t, {256, 3}); };
  const int choice = c_.pick(9);
  if (choice == 0) {
    x = small(x);
    const UnaryOp op = c_.one_of(std::array{UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Floor, UnaryOp::Ceil, UnaryOp::Round});
    const bool rounds = op == UnaryOp::Floor || op == UnaryOp::Ceil || op == UnaryOp::Round;
    return {b_.unary(op, x.value), rounds ? Range{x.range.limit + 1, 0} : x.range};
  }
  x = small(x);
  const Term y = small(expression_of(type, depth - 1));
  const Range sum = {x.range.limit + y.range.limit, std::max(x.range.fraction, y.range.fraction)};
  const Range product = {x.range.limit * y.range.limit, x.range.fraction + y.range.fraction};
  const Range either = {std::max(x.range.limit, y.range.limit), sum.fraction};
  if (choice <= 2) return {b_.binary(BinaryOp::Add, x.value, y.value), sum};
  if (choice <= 4) return {b_.binary(BinaryOp::Sub, x.value, y.value), sum};
  if (choice <= 6 && needed(product) <= (is_exact_case() ? digits(type) : 1e6)) {
    return {b_.binary(BinaryOp::Mul, x.value, y.value), product};
  }
  return {b_.binary(choice % 2 ? BinaryOp::Min : BinaryOp::Max, x.value, y.value), either};
}

/// A function on a range where it neither overflows nor leaves its domain.
Term Generator::math(Term x) {
  const DType type = x.dtype();
  switch (c_.pick(8)) {
    case 0:
    case 1: {
      x = fit(x, {8, 0});
      const bool two = c_.chance(50);
      return {b_.unary(two ? UnaryOp::Exp2 : UnaryOp::Exp, x.value), {two ? 256.0 : 2981.0, 0}};
    }
    case 2:
    case 3: {
      const UnaryOp op =
          c_.one_of(std::array{UnaryOp::Tanh, UnaryOp::Erf, UnaryOp::Sigmoid, UnaryOp::Sin, UnaryOp::Cos});
      return {b_.unary(op, x.value), {1, 0}};
    }
    case 4:
    case 5: {
      Value* positive = b_.binary(BinaryOp::Add, b_.unary(UnaryOp::Abs, x.value), b_.real(type, 0.5));
      const UnaryOp op = c_.one_of(std::array{UnaryOp::Sqrt, UnaryOp::Rsqrt, UnaryOp::Log, UnaryOp::Log2});
      return {b_.unary(op, positive), {std::sqrt(x.range.limit + 1) + 12, 0}};
    }
    case 6: {
      Value* positive = b_.binary(BinaryOp::Add, b_.unary(UnaryOp::Abs, x.value), b_.real(type, 0.5));
      return {b_.binary(BinaryOp::Div, b_.real(type, 1 + c_.pick(4)), positive), {8, 0}};
    }
    default: {
      x = fit(x, {4, 0});
      Value* positive = b_.binary(BinaryOp::Add, b_.unary(UnaryOp::Abs, x.value), b_.real(type, 0.5));
      return {b_.binary(BinaryOp::Pow, positive, b_.real(type, 0.5 * (1 + c_.pick(4)))), {32, 0}};
    }
  }
}

Term Generator::integer_operation(Term x, int depth) {
  const DType type = x.dtype();
  if (c_.chance(15)) {
    return {b_.unary(c_.one_of(std::array{UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Not}), x.value), {}};
  }
  Term y = expression_of(type, depth - 1);
  const BinaryOp op = c_.one_of(std::array{BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max,
                                           BinaryOp::And, BinaryOp::Or, BinaryOp::Xor, BinaryOp::Shl, BinaryOp::Shr,
                                           BinaryOp::FloorDiv, BinaryOp::FloorMod});
  if (op == BinaryOp::FloorDiv || op == BinaryOp::FloorMod) {
    y.value = b_.binary(BinaryOp::Or, y.value, b_.integer(type, 1));  // never zero
  }
  return {b_.binary(op, x.value, y.value), {}};
}

}  // namespace tilewright::fuzz
