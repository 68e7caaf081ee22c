#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fuzz/generator.h"

namespace tilewright::fuzz {
namespace {

using ir::Index;
using ir::MemorySpace;
using ir::Value;

bool is_any(DType) { return true; }
bool is_number(DType t) { return t != DType::Bool; }

}  // namespace

std::vector<Index> Generator::extents(Shape shape) const {
  switch (shape) {
    case Shape::Full: return {b_.constant_index(block_m_), b_.constant_index(block_n_)};
    case Shape::Row: return {b_.constant_index(block_m_)};
    case Shape::Column: return {b_.constant_index(block_n_)};
  }
  return {};
}

int Generator::fragment_share() const {
  if (is_focus(Focus::Rows) || is_focus(Focus::Masks)) return 100;
  if (is_focus(Focus::Shared)) return 0;
  return is_matrix_ ? 95 : 50;
}

Tile& Generator::new_tile(DType dtype, Shape shape) {
  const bool fragment = c_.chance(fragment_share());
  std::vector<int64_t> sizes;
  if (shape != Shape::Column) sizes.push_back(block_m_);
  if (shape != Shape::Row) sizes.push_back(block_n_);
  Value* v =
      b_.alloc(fragment ? MemorySpace::Fragment : MemorySpace::Shared, dtype, sizes, fmt::format("t{}", tiles_.size()));
  return tiles_.emplace_back(Tile{v, dtype, shape, {}, fragment});
}

Tile* Generator::find_tile(Shape shape, bool (*wanted)(DType)) {
  std::vector<Tile*> found;
  for (Tile& t : tiles_) {
    if (t.shape == shape && wanted(t.dtype)) found.push_back(&t);
  }
  if (found.empty()) return nullptr;
  return found[found.size() - 1 - static_cast<size_t>(c_.pick(static_cast<int>(found.size())))];
}

Tile& Generator::any_tile(Shape shape) {
  Tile* found = find_tile(shape, is_any);
  return found ? *found : load_tile(shape);
}

/// The block's part of a tensor argument of the given shape.
ir::View Generator::global_view(int tensor, Shape shape) const {
  const Index bx = b_.symbol(bx_), by = b_.symbol(by_);
  ir::View view = {.buffer = out_.kernel.tensors[static_cast<size_t>(tensor)].buffer};
  if (shape != Shape::Column) view.slices.push_back({by * block_m_, b_.constant_index(block_m_), true});
  if (shape != Shape::Row) view.slices.push_back({bx * block_n_, b_.constant_index(block_n_), true});
  return view;
}

Tile& Generator::load_tile(Shape shape) {
  const DType dtype = any_dtype();
  std::vector<Index> sizes;
  if (shape != Shape::Column) sizes.push_back(b_.symbol(m_));
  if (shape != Shape::Row) sizes.push_back(columns());
  const int tensor = add_tensor(fmt::format("A{}", out_.kernel.tensors.size()), dtype, sizes, ir::Direction::In);
  const TensorPlan plan = out_.tensors[static_cast<size_t>(tensor)];
  Tile& tile = new_tile(dtype, shape);
  tile.range = plan.range;
  Value* outside = nullptr;
  if (is_number(dtype) && c_.chance(30)) {
    const DType type = compute_type(dtype);
    outside = is_float(type) ? b_.real(type, c_.pick(3)) : b_.integer(type, c_.pick(3));
  }
  b_.copy(global_view(tensor, shape), b_.whole(tile.buffer), outside);
  return tile;
}

void Generator::statements(int count) {
  for (int i = 0; i < count; ++i) {
    b_.set_location({.file = b_.location().file, .line = b_.location().line + 1, .column = 1});
    is_focus(Focus::Any) ? statement() : focused_statement();
  }
}

/// What a block with products on matrix instructions typically does.
void Generator::matrix_statement() {
  switch (c_.pick(9)) {
    case 0:
    case 1: return gemm();
    case 8: return chain();
    case 2: return reduce();
    case 3: return convert_tile();
    case 4: load_tile(c_.one_of(std::array{Shape::Full, Shape::Row, Shape::Column})); return;
    default: return elementwise();
  }
}

void Generator::statement() {
  const bool nested = inside_loop_ > 0;
  if (is_matrix_ && !nested && c_.chance(80)) return matrix_statement();
  switch (c_.pick(14)) {
    case 0:
    case 1:
    case 2: return elementwise();
    case 3: load_tile(c_.one_of(std::array{Shape::Full, Shape::Row, Shape::Column})); return;
    case 4: return reduce();
    case 5: return scan();
    case 6: return convert_tile();
    case 7: return fill_tile();
    case 8:
    case 9: return gemm();
    case 10: return reduce_arg();
    case 11: return nested ? elementwise() : branch();
    case 12: return nested ? elementwise() : loop();
    default: return nested ? elementwise() : atomic();
  }
}

void Generator::fill_tile() {
  const DType dtype = any_dtype(), type = compute_type(dtype);
  Tile& tile = new_tile(dtype, c_.one_of(std::array{Shape::Full, Shape::Row, Shape::Column}));
  tile.range = {2, 0};
  const int v = c_.pick(3);
  b_.fill(b_.whole(tile.buffer), is_float(type) ? b_.real(type, v) : b_.integer(type, type == DType::Bool ? v & 1 : v));
}

void Generator::convert_tile() {
  Tile& source = any_tile(c_.one_of(std::array{Shape::Full, Shape::Row, Shape::Column}));
  const Range range = source.range;
  DType dtype = any_dtype();
  const double wanted = range.limit * std::ldexp(1.0, range.fraction);
  if (is_float(dtype) && is_float(source.dtype) && is_exact_case() && wanted > room_of(dtype).limit)
    dtype = source.dtype;
  Value* from = source.buffer;
  const bool integer_source = !is_float(source.dtype);
  const int source_bits = bits(source.dtype);
  if (is_float(dtype) && integer_source && source_bits > 8 && (bits(dtype) < 32 || !is_exact_case()))
    dtype = DType::F64;
  Tile& tile = new_tile(dtype, source.shape);
  tile.range = integer_source ? Range{std::ldexp(1.0, source_bits), 0} : range;
  b_.copy(b_.whole(from), b_.whole(tile.buffer));
}

void Generator::store(const Tile& tile, Term value, bool keep_range) {
  const DType type = compute_type(tile.dtype);
  value = convert(value, type);
  if (is_float(type)) value = keep_range ? fit(value, tile.range) : fit_dtype(value, tile.dtype);
  b_.store(tile.buffer, iteration_, value.value);
}

void Generator::elementwise() {
  const bool nested = inside_loop_ > 0;
  const Shape shape = c_.one_of(std::array{Shape::Full, Shape::Full, Shape::Row, Shape::Column});
  const bool partial = c_.chance(is_focus(Focus::Masks) ? 100 : 20);  // only some iterations store
  const bool in_place = nested || partial || c_.chance(40);
  Tile& tile = in_place ? any_tile(shape) : new_tile(any_dtype(), shape);
  if (!in_place) tile.range = room_of(tile.dtype);
  written_ = &tile;
  iteration_shape_ = shape;
  Range result = tile.range;
  b_.parallel(extents(shape), [&](const std::vector<Value*>& variables) {
    iteration_.clear();
    for (Value* v : variables) {
      v->name = iteration_.empty() ? "i" : "j";
      iteration_.push_back(b_.symbol(v));
    }
    if (partial) {
      const Term when = condition(1);
      b_.if_else(when.value, [&](const std::vector<Value*>&) { store(tile, expression(2), true); });
    } else if (in_place) {
      store(tile, expression(1 + c_.pick(3)), true);
    } else {
      Term value = convert(expression(1 + c_.pick(3)), compute_type(tile.dtype));
      if (is_float(tile.dtype)) value = fit_dtype(value, tile.dtype);
      result = value.range;
      b_.store(tile.buffer, iteration_, value.value);
    }
  });
  tile.range = result;
  written_ = nullptr;
  iteration_.clear();
}

void Generator::reduce() {
  using ir::ReduceKind;
  Tile* found = find_tile(Shape::Full, is_any);
  Tile& source = found ? *found : load_tile(Shape::Full);
  const int dim = !is_focus(Focus::Rows) && c_.chance(50) ? 0 : 1;
  const int64_t extent = dim == 0 ? block_m_ : block_n_;
  const Shape shape = dim == 0 ? Shape::Column : Shape::Row;
  const Range range = source.range;
  const DType from = source.dtype;
  Value* buffer = source.buffer;
  ReduceKind kind;
  DType to = from;
  if (from == DType::Bool) {
    kind = c_.one_of(std::array{ReduceKind::Any, ReduceKind::All, ReduceKind::And, ReduceKind::Or, ReduceKind::Xor});
  } else if (is_float(from)) {
    kind = c_.one_of(std::array{ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::AbsSum,
                                ReduceKind::AbsMax, ReduceKind::Prod});
  } else {
    kind =
        c_.one_of(std::array{ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::AbsSum, ReduceKind::AbsMax,
                             ReduceKind::Prod, ReduceKind::And, ReduceKind::Or, ReduceKind::Xor});
  }
  if (is_float(from) && c_.chance(40)) to = from == DType::F64 ? DType::F64 : DType::F32;
  Range result = range;
  if (is_float(from)) {
    const Range room = room_of(to);
    if (kind == ReduceKind::Sum || kind == ReduceKind::AbsSum) result.limit = range.limit * static_cast<double>(extent);
    if (kind == ReduceKind::Prod) {
      result.limit = std::pow(std::max(range.limit, 1.0), static_cast<double>(extent));
      result.fraction = range.fraction * static_cast<int>(extent);
    }
    if (!(result.limit * std::ldexp(1.0, result.fraction) <= room.limit)) kind = ReduceKind::Max, result = range;
  }
  Tile& dst = new_tile(to, shape);
  dst.range = result;
  b_.reduce({.kind = kind, .src = b_.whole(buffer), .dst = b_.whole(dst.buffer), .dim = dim});
  const bool may_join = !is_float(from) || kind == ReduceKind::Max || kind == ReduceKind::Min;
  if (may_join && c_.chance(30)) {
    b_.reduce({.kind = kind, .src = b_.whole(buffer), .dst = b_.whole(dst.buffer), .dim = dim, .accumulate = true});
  }
}

void Generator::reduce_arg() {
  Tile* found = find_tile(Shape::Full, is_number);
  if (!found) return elementwise();
  const Tile source = *found;
  const int dim = c_.chance(50) ? 0 : 1;
  const Shape shape = dim == 0 ? Shape::Column : Shape::Row;
  Tile& value = new_tile(source.dtype, shape);
  value.range = source.range;
  Value* value_buffer = value.buffer;
  Tile& index = new_tile(c_.chance(50) ? DType::I64 : DType::I32, shape);
  b_.op(ir::OpKind::ReduceArg, {},
        ir::ReduceArgAttributes{c_.chance(50), b_.whole(source.buffer), b_.whole(value_buffer), b_.whole(index.buffer),
                                dim});
}

void Generator::scan() {
  const Shape shape = c_.one_of(std::array{Shape::Full, Shape::Row, Shape::Column});
  Tile* found = find_tile(shape, is_number);
  if (!found) return elementwise();
  const Tile source = *found;
  const int dim = shape == Shape::Full && c_.chance(50) ? 1 : 0;
  const int64_t extent = shape == Shape::Row || (shape == Shape::Full && dim == 0) ? block_m_ : block_n_;
  ir::ScanKind kind = c_.one_of(std::array{ir::ScanKind::Sum, ir::ScanKind::Max, ir::ScanKind::Prod});
  Range range = source.range;
  if (is_float(source.dtype)) {
    if (kind == ir::ScanKind::Sum) range.limit *= static_cast<double>(extent);
    if (kind == ir::ScanKind::Prod) {
      range.limit = std::pow(std::max(range.limit, 1.0), static_cast<double>(extent));
      range.fraction *= static_cast<int>(extent);
    }
    const double needed = range.limit * std::ldexp(1.0, range.fraction);
    if (!(needed <= room_of(source.dtype).limit)) kind = ir::ScanKind::Max, range = source.range;
  }
  Tile& dst = new_tile(source.dtype, shape);
  dst.range = range;
  b_.op(ir::OpKind::Scan, {}, ir::ScanAttributes{kind, b_.whole(source.buffer), b_.whole(dst.buffer), dim});
}

/// C = A·B of tiles already in the pool, when they are square.
bool Generator::gemm_of_tiles() {
  if (block_m_ != block_n_ || block_n_ > 64) return false;
  const auto is_operand = [](DType t) { return t == DType::F32 || t == DType::F16 || t == DType::BF16; };
  Tile* a = find_tile(Shape::Full, is_operand);
  Tile* b = find_tile(Shape::Full, is_operand);
  if (!a || !b) return false;
  const Range range = {a->range.limit * b->range.limit * static_cast<double>(block_n_),
                       a->range.fraction + b->range.fraction};
  if (!(range.limit * std::ldexp(1.0, range.fraction) <= (is_exact_case() ? room_of(DType::F32).limit : 1e6)))
    return false;
  ir::GemmAttributes g = {.a = b_.whole(a->buffer), .b = b_.whole(b->buffer)};
  Tile& c = new_tile(DType::F32, Shape::Full);
  c.range = range;
  g.c = b_.whole(c.buffer);
  g.transpose_a = c_.chance(25), g.transpose_b = c_.chance(40), g.accumulate = false;
  b_.gemm(g);
  return true;
}

std::pair<DType, DType> Generator::operand_types(bool bytes_only, bool wide) {
  if (is_focus(Focus::Products)) {
    const DType both = c_.one_of(std::array{DType::BF16, DType::F16});
    return {both, both};
  }
  const bool equal = is_matrix_ && c_.chance(80);
  const auto operand_type = [&]() {
    if (bytes_only) return c_.chance(50) ? DType::U8 : DType::I8;
    if (wide) return DType::F64;
    return c_.one_of(std::array{DType::F32, DType::F16, DType::BF16});
  };
  const DType ta = operand_type(), other = operand_type();
  return {ta, equal ? ta : other};
}

void Generator::gemm() {
  const bool is_free = !is_focus(Focus::Products);
  if (is_free && c_.chance(25) && gemm_of_tiles()) return;
  const bool bytes_only = is_free && c_.chance(20);
  const bool wide = is_free && !bytes_only && c_.chance(10);
  const auto [ta, tb] = operand_types(bytes_only, wide);
  const DType tc = bytes_only ? DType::I32 : wide ? DType::F64 : DType::F32;
  const bool transpose_a = c_.chance(25), transpose_b = c_.chance(25);
  const Index M = b_.symbol(m_), N = b_.symbol(n_), K = b_.symbol(k_);
  const auto shape_of = [](bool transposed, Index x, Index y) {
    return transposed ? std::vector<Index>{y, x} : std::vector<Index>{x, y};
  };
  const int number = static_cast<int>(out_.kernel.tensors.size());
  const int a = add_tensor(fmt::format("A{}", number), ta, shape_of(transpose_a, M, K), ir::Direction::In);
  const int b = add_tensor(fmt::format("B{}", number), tb, shape_of(transpose_b, K, N), ir::Direction::In);
  const Range ra = out_.tensors[static_cast<size_t>(a)].range, rb = out_.tensors[static_cast<size_t>(b)].range;
  const auto alloc = [&](DType type, bool transposed, int64_t x, int64_t y, const char* name) {
    return b_.alloc(c_.chance(!is_free     ? 100
                              : is_matrix_ ? 97
                                           : 80)
                        ? MemorySpace::Shared
                        : MemorySpace::Fragment,
                    type, transposed ? std::vector<int64_t>{y, x} : std::vector<int64_t>{x, y},
                    fmt::format("{}{}", name, number));
  };
  Value* a_s = alloc(ta, transpose_a, block_m_, block_k_, "a");
  Value* b_s = alloc(tb, transpose_b, block_k_, block_n_, "b");
  Tile& acc = new_tile(tc, Shape::Full);
  const auto terms = static_cast<double>(out_.dimensions[2] + block_k_);
  acc.range = {ra.limit * rb.limit * terms, ra.fraction + rb.fraction};
  Value* c = acc.buffer;
  const int start = c_.chance(20) ? 1 + c_.pick(3) : 0;
  acc.range.limit += start;
  b_.fill(b_.whole(c), is_float(tc) ? b_.real(tc, start) : b_.integer(tc, start));
  const auto view = [&](int tensor, bool transposed, Index x, int64_t nx, Index y, int64_t ny) {
    ir::Slice first = {x, b_.constant_index(nx), true}, second = {y, b_.constant_index(ny), true};
    if (transposed) std::swap(first, second);
    return ir::View{out_.kernel.tensors[static_cast<size_t>(tensor)].buffer, {first, second}};
  };
  const int stages = 1 + c_.pick(4);
  const auto step = [&](const std::vector<Value*>& at) {
    const Index k = b_.symbol(at[0]) * block_k_;
    b_.copy(view(a, transpose_a, b_.symbol(by_) * block_m_, block_m_, k, block_k_), b_.whole(a_s));
    b_.copy(view(b, transpose_b, k, block_k_, b_.symbol(bx_) * block_n_, block_n_), b_.whole(b_s));
    b_.gemm({.a = b_.whole(a_s),
             .b = b_.whole(b_s),
             .c = b_.whole(c),
             .transpose_a = transpose_a,
             .transpose_b = transpose_b});
  };
  if (!is_free || c_.chance(70)) {
    b_.pipelined(ceildiv(K, block_k_), stages, step);
  } else {
    b_.for_loop(b_.constant_index(0), ceildiv(K, block_k_), b_.constant_index(1), step);
  }
}

/// Two products in one loop, the first one's result the left operand of the second: the shape of attention.
void Generator::chain() {
  constexpr int64_t kDepth = 32;
  const DType dtype = c_.one_of(std::array{DType::BF16, DType::F16});
  const Index M = b_.symbol(m_), N = b_.symbol(n_), K = b_.symbol(k_), D = b_.constant_index(kDepth);
  const int number = static_cast<int>(out_.kernel.tensors.size());
  const auto argument = [&](const char* name, std::vector<Index> shape) {
    const int at = add_tensor(fmt::format("{}{}", name, number), dtype, std::move(shape), ir::Direction::In);
    return std::pair(out_.kernel.tensors[static_cast<size_t>(at)].buffer, out_.tensors[static_cast<size_t>(at)].range);
  };
  const auto [q, q_range] = argument("Q", {M, D});
  const auto [k, k_range] = argument("K", {K, D});
  const auto [v, v_range] = argument("V", {K, N});
  const auto tile = [&](MemorySpace space, DType type, int64_t x, int64_t y, const char* name) {
    return b_.alloc(space, type, {x, y}, fmt::format("{}{}", name, number));
  };
  Value* q_s = tile(MemorySpace::Shared, dtype, block_m_, kDepth, "q");
  Value* k_s = tile(MemorySpace::Shared, dtype, block_k_, kDepth, "k");
  Value* v_s = tile(MemorySpace::Shared, dtype, block_k_, block_n_, "v");
  Value* s = tile(MemorySpace::Fragment, DType::F32, block_m_, block_k_, "s");
  Value* p = tile(MemorySpace::Fragment, dtype, block_m_, block_k_, "p");
  Tile& o = new_tile(DType::F32, Shape::Full);
  Value* out = o.buffer;
  constexpr double kLimit = 4;
  const auto terms = static_cast<double>(out_.dimensions[2] + block_k_);
  o.range = {kLimit * v_range.limit * terms, q_range.fraction + k_range.fraction + v_range.fraction};
  const auto rows = [&](Value* tensor, Index start, int64_t n, Index column, int64_t columns) {
    return ir::View{tensor, {{start, b_.constant_index(n), true}, {column, b_.constant_index(columns), true}}};
  };
  const Index zero = b_.constant_index(0);
  b_.copy(rows(q, b_.symbol(by_) * block_m_, block_m_, zero, kDepth), b_.whole(q_s));
  b_.fill(b_.whole(out), b_.real(DType::F32, 0));
  b_.pipelined(ceildiv(K, block_k_), 2 + c_.pick(2), [&](const std::vector<Value*>& at) {
    const Index step = b_.symbol(at[0]) * block_k_;
    b_.copy(rows(k, step, block_k_, zero, kDepth), b_.whole(k_s));
    b_.copy(rows(v, step, block_k_, b_.symbol(bx_) * block_n_, block_n_), b_.whole(v_s));
    b_.gemm({.a = b_.whole(q_s), .b = b_.whole(k_s), .c = b_.whole(s), .transpose_b = true, .accumulate = false});
    const std::vector<Index> scores = {b_.constant_index(block_m_), b_.constant_index(block_k_)};
    b_.parallel(scores, [&](const std::vector<Value*>& i) {
      const std::vector<Index> here = {b_.symbol(i[0]), b_.symbol(i[1])};
      b_.store(s, here, b_.binary(ir::BinaryOp::Max, b_.load(s, here), b_.real(DType::F32, -kLimit)));
    });
    b_.parallel(scores, [&](const std::vector<Value*>& i) {
      const std::vector<Index> here = {b_.symbol(i[0]), b_.symbol(i[1])};
      b_.store(p, here, b_.binary(ir::BinaryOp::Min, b_.load(s, here), b_.real(DType::F32, kLimit)));
    });
    b_.gemm({.a = b_.whole(p), .b = b_.whole(v_s), .c = b_.whole(out)});
  });
}

void Generator::branch() {
  const Index bx = b_.symbol(bx_), M = b_.symbol(m_);
  Value* when =
      b_.index_condition(c_.chance(50) ? equal(bx, b_.constant_index(0)) : less(M, b_.constant_index(1 + c_.pick(20))));
  const size_t known = tiles_.size();
  ++inside_loop_;
  const bool has_else = c_.chance(40);
  const auto side = [&](const std::vector<Value*>&) {
    statements(1 + c_.pick(2));
    tiles_.resize(known);
  };
  b_.if_else(when, side, has_else ? ir::Builder::Body(side) : ir::Builder::Body());
  --inside_loop_;
}

void Generator::loop() {
  const size_t known = tiles_.size();
  ++inside_loop_;
  const auto body = [&](const std::vector<Value*>&) {
    statements(1 + c_.pick(2));
    tiles_.resize(known);
  };
  const Index count = c_.chance(50) ? b_.constant_index(c_.pick(4)) : floordiv(b_.symbol(m_), b_.constant_index(5));
  switch (c_.pick(3)) {
    case 0: b_.for_loop(b_.constant_index(0), count, b_.constant_index(1), body); break;
    case 1: b_.pipelined(count, 1 + c_.pick(3), body); break;
    default: {
      Value* left = b_.alloc(MemorySpace::Var, DType::I32, {}, fmt::format("n{}", tiles_.size()));
      b_.store(left, {}, b_.integer(DType::I32, c_.pick(4)));
      b_.while_loop(
          [&](const std::vector<Value*>&) {
            b_.yield({b_.compare(ir::CompareOp::Gt, b_.load(left, {}), b_.integer(DType::I32, 0))});
          },
          [&](const std::vector<Value*>& none) {
            body(none);
            b_.store(left, {}, b_.binary(ir::BinaryOp::Sub, b_.load(left, {}), b_.integer(DType::I32, 1)));
          });
    }
  }
  --inside_loop_;
}

void Generator::atomic() {
  using ir::AtomicKind;
  const DType dtype = c_.one_of(std::array{DType::I32, DType::I64, DType::U32, DType::U64, DType::F32, DType::F64});
  const AtomicKind kind =
      is_float(dtype) ? c_.one_of(std::array{AtomicKind::Add, AtomicKind::Max, AtomicKind::Min})
                      : c_.one_of(std::array{AtomicKind::Add, AtomicKind::Max, AtomicKind::Min, AtomicKind::Or});
  const int64_t size = 1 + c_.pick(5);
  const int h = add_tensor(fmt::format("H{}", out_.kernel.tensors.size()), dtype, {b_.constant_index(size)},
                           ir::Direction::InOut);
  out_.tensors[static_cast<size_t>(h)].range = {4, 0};
  Value* buffer = out_.kernel.tensors[static_cast<size_t>(h)].buffer;
  iteration_shape_ = Shape::Full;
  b_.parallel(extents(Shape::Full), [&](const std::vector<Value*>& i) {
    i[0]->name = "i", i[1]->name = "j";
    iteration_ = {b_.symbol(i[0]), b_.symbol(i[1])};
    Term value = convert(expression(1), dtype);
    if (is_float(dtype)) value = fit(value, {8, 0});
    b_.op(ir::OpKind::Atomic, {value.value},
          ir::AtomicAttributes{kind, buffer, {floormod(iteration_[0] + iteration_[1], b_.constant_index(size))}});
  });
  iteration_.clear();
}

}  // namespace tilewright::fuzz
