#include "fuzz/generate.h"

#include <fmt/format.h>

#include <array>

#include "fuzz/generator.h"

namespace tilewright::fuzz {
namespace {

constexpr std::array kTileSizes = {4, 8, 16, 1, 2, 3, 5, 7, 12, 17, 24, 32, 33};
constexpr std::array kDTypes = {DType::F32, DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32, DType::I8,
                                DType::U8,  DType::I16, DType::I64, DType::U16,  DType::U32, DType::U64, DType::Bool};
constexpr std::array kFloats = {DType::F32, DType::F32, DType::F16, DType::BF16, DType::F64};
constexpr std::array kMatrixDTypes = {DType::F32, DType::BF16, DType::F16};
constexpr std::array kPrimes = {2, 3, 5, 7, 11, 13, 19, 31, 37};

}  // namespace

Case generate(Choices& choices, const GenerateOptions& options) { return Generator(choices, options).run(); }

DType Generator::any_dtype() { return is_matrix_ && c_.chance(80) ? c_.one_of(kMatrixDTypes) : c_.one_of(kDTypes); }
DType Generator::float_dtype() { return c_.one_of(kFloats); }

int64_t Generator::extent_near(int64_t tile) {
  switch (c_.pick(8)) {
    case 0: return tile;
    case 1: return 1;
    case 2: return tile + 1;
    case 3: return std::max<int64_t>(tile - 1, 1);
    case 4: return 2 * tile;
    case 5: return 2 * tile + 1;
    case 6: return c_.one_of(kPrimes);
    default: return c_.chance(30) ? 0 : 3 * tile - 1;
  }
}

void Generator::add_dimension(const char* name, ir::Value*& value, int64_t extent) {
  value = out_.kernel.new_value(ir::Type::scalar(DType::I64), name);
  const bool constant = c_.chance(is_focus(Focus::Copies) ? 100 : 25);
  out_.kernel.dimensions.push_back({name, value, constant ? std::optional(extent) : std::nullopt});
  out_.dimensions.push_back(extent);
}

void Generator::choose_sizes() {
  if (!is_focus(Focus::Any)) return choose_focused_sizes();
  is_matrix_ = options_.matrix && c_.chance(50);
  block_m_ = is_matrix_ ? c_.one_of(std::array{64, 16, 32, 128}) : c_.one_of(kTileSizes);
  block_n_ = is_matrix_ ? c_.one_of(std::array{32, 16, 64, 128}) : c_.one_of(kTileSizes);
  block_k_ = is_matrix_ ? c_.one_of(std::array{16, 32, 64}) : c_.one_of(kTileSizes);
  add_dimension("M", m_, extent_near(block_m_));
  // The interpreter takes seconds for more than a few large tiles.
  const bool is_large = block_m_ * block_n_ >= 128 * 128 && out_.dimensions[0] > 2 * block_m_;
  add_dimension("N", n_, is_large ? block_n_ - 1 : extent_near(block_n_));
  add_dimension("K", k_, extent_near(block_k_));
}

/// Elements that make the pitch of a row a multiple of 16.
int64_t Generator::aligning_padding(const std::vector<ir::Index>& shape) const {
  const int64_t inner = ir::evaluate(shape.back(), [&](const ir::Value* v) -> int64_t {
    for (size_t i = 0; i < out_.kernel.dimensions.size(); ++i)
      if (out_.kernel.dimensions[i].value == v) return out_.dimensions[i];
    return 0;
  });
  return (16 - inner % 16) % 16;
}

int Generator::add_tensor(const std::string& name, DType dtype, std::vector<ir::Index> shape, ir::Direction direction) {
  const int64_t padding = shape.size() > 1 ? aligning_padding(shape) : 0;
  ir::Value* v = out_.kernel.new_value(ir::Type::buffer(ir::MemorySpace::Global, dtype, std::move(shape)), name);
  out_.kernel.tensors.push_back({.buffer = v, .direction = direction, .location = b_.location()});
  TensorPlan plan;
  if (is_exact_case()) {
    const bool tiny = bits(dtype) == 8;
    plan.range = tiny ? Range{2, 0} : Range{c_.chance(30) ? 8.0 : 4.0, c_.chance(25) ? 1 : 0};
  }
  if (is_matrix_)
    plan.padding = c_.chance(5) ? 1 : padding;
  else if (c_.chance(25))
    plan.padding = 1 + c_.pick(9);
  out_.tensors.push_back(plan);
  return static_cast<int>(out_.kernel.tensors.size()) - 1;
}

Case Generator::run() {
  out_.kernel.name = "fuzzed";
  out_.comparison = c_.chance(40) ? Comparison::Bounded : Comparison::Exact;
  out_.data_seed = 1 + static_cast<uint64_t>(c_.pick(1000));
  choose_sizes();
  b_.set_location({.file = std::make_shared<std::string>("fuzzed.tile"), .line = 1, .column = 1});
  // Every dimension must be bound by some argument.
  for (const auto& [name, extent] : {std::pair{"Dm", m_}, std::pair{"Dn", n_}, std::pair{"Dk", k_}}) {
    out_.tensors[static_cast<size_t>(add_tensor(name, DType::U8, {b_.symbol(extent)}, ir::Direction::In))].padding = 0;
  }
  if (is_focus(Focus::Any) && c_.chance(15)) first_grid();
  grid([&] { block(); });
  return std::move(out_);
}

/// Constant extents make other code than dimensions that happen to be constant.
ir::Index Generator::columns() const {
  return is_focus(Focus::Copies) ? b_.constant_index(out_.dimensions[1]) : b_.symbol(n_);
}

int Generator::threads() {
  if (is_focus(Focus::Rows)) return c_.one_of(std::array{64, 32});
  if (is_focus(Focus::Masks)) return 32;
  return c_.one_of(std::array{128, 32, 64, 256});
}

void Generator::grid(const std::function<void()>& body) {
  ir::GridAttributes attributes = {.extents = {ceildiv(b_.symbol(n_), block_n_), ceildiv(b_.symbol(m_), block_m_)},
                                   .threads = threads()};
  attributes.persistent = c_.chance(20);
  tiles_.clear();
  b_.grid(attributes, [&](const std::vector<ir::Value*>& at) {
    bx_ = at[0], by_ = at[1];
    bx_->name = "bx", by_->name = "by";
    body();
  });
}

/// A grid that leaves a tile in a workspace for the grid after it.
void Generator::first_grid() {
  grid([&] {
    Tile* made = nullptr;
    load_tile(Shape::Full);
    statements(1 + c_.pick(2));
    for (Tile& t : tiles_) {
      if (t.shape == Shape::Full) made = &t;
    }
    workspace_ = add_tensor("W", made->dtype, {b_.symbol(m_), b_.symbol(n_)}, ir::Direction::Workspace);
    workspace_range_ = made->range;
    b_.copy(b_.whole(made->buffer), global_view(workspace_, Shape::Full));
  });
}

void Generator::block() {
  if (!is_focus(Focus::Any)) return focused_block();
  if (workspace_ >= 0) {
    Tile& tile = new_tile(out_.kernel.tensors[static_cast<size_t>(workspace_)].buffer->type.dtype, Shape::Full);
    tile.range = workspace_range_;
    b_.copy(global_view(workspace_, Shape::Full), b_.whole(tile.buffer));
  } else {
    load_tile(Shape::Full);
  }
  statements(1 + c_.pick(6));
  write_outputs();
}

void Generator::write_outputs() {
  const int count = 1 + (c_.chance(50) ? c_.pick(3) : 0);
  std::vector<bool> taken(tiles_.size(), false);
  for (int i = 0; i < count; ++i) {
    const size_t from_end = static_cast<size_t>(c_.pick(static_cast<int>(tiles_.size())));
    const size_t at = tiles_.size() - 1 - from_end;
    if (taken[at]) continue;
    taken[at] = true;
    write_output(tiles_[at], i);
  }
}

void Generator::write_output(const Tile& tile, int number) {
  using namespace ir;
  DType dtype = tile.dtype;
  if (c_.chance(30)) {
    const DType other = any_dtype();
    const Range room = room_of(other);
    const bool narrows =
        is_float(other) && is_float(dtype) && tile.range.limit * (1 << tile.range.fraction) > room.limit;
    const bool from_wide_integer = is_float(other) && is_int(dtype) && bits(other) < 32 && is_exact_case();
    if (!narrows && !from_wide_integer && other != DType::Bool && dtype != DType::Bool) dtype = other;
  }
  const Index M = b_.symbol(m_), N = columns(), bx = b_.symbol(bx_), by = b_.symbol(by_);
  const std::string name = fmt::format("O{}", number);
  std::vector<Index> shape = {M, N};
  if (tile.shape == Shape::Row) shape = {ceildiv(N, block_n_), M};
  if (tile.shape == Shape::Column) shape = {ceildiv(M, block_m_), N};
  const int position = add_tensor(name, dtype, shape, Direction::Out);
  Value* out = out_.kernel.tensors[static_cast<size_t>(position)].buffer;
  if (c_.chance(60) || tile.shape != Shape::Full) {
    View dst = {.buffer = out};
    if (tile.shape == Shape::Row) dst.slices.push_back({bx, b_.constant_index(1), false});
    if (tile.shape == Shape::Column) dst.slices.push_back({by, b_.constant_index(1), false});
    if (tile.shape != Shape::Column) dst.slices.push_back({by * block_m_, b_.constant_index(block_m_), true});
    if (tile.shape != Shape::Row) dst.slices.push_back({bx * block_n_, b_.constant_index(block_n_), true});
    b_.copy(b_.whole(tile.buffer), dst);
    return;
  }
  // Element by element; rows and columns beyond the edge are dropped by the buffer's guard or excluded by an `if`.
  const bool excluded = c_.chance(50);
  out_.kernel.tensors[static_cast<size_t>(position)].guarded = !excluded;
  b_.parallel(extents(Shape::Full), [&](const std::vector<Value*>& i) {
    const Index row = by * block_m_ + b_.symbol(i[0]), column = bx * block_n_ + b_.symbol(i[1]);
    const auto element = [&](const std::vector<Value*>& = {}) {
      Value* v = b_.load(tile.buffer, {b_.symbol(i[0]), b_.symbol(i[1])});
      b_.store(out, {row, column}, b_.cast(v, compute_type(dtype)));
    };
    if (!excluded) return element();
    b_.if_else(b_.index_condition(logical_and(less(row, M), less(column, N))), element);
  });
  if (!excluded || !c_.chance(40)) return;
  // Once more where an element further on exists as well: at the edge that may be for no column of a block.
  constexpr int64_t kFurther[] = {1, 2, 7, 17, 40, 100};
  const int64_t further = kFurther[c_.pick(std::size(kFurther))];
  b_.parallel(extents(Shape::Full), [&](const std::vector<Value*>& i) {
    const Index row = by * block_m_ + b_.symbol(i[0]), column = bx * block_n_ + b_.symbol(i[1]);
    b_.if_else(b_.index_condition(logical_and(less(row, M), less(column + further, N))),
               [&](const std::vector<Value*>& = {}) {
                 b_.store(out, {row, column}, b_.cast(b_.integer(DType::I32, 1), compute_type(dtype)));
               });
  });
}

}  // namespace tilewright::fuzz
