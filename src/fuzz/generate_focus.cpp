// Cases that hold one class of operations, for planted mistakes that random cases meet too rarely.
#include <algorithm>
#include <array>

#include "fuzz/generator.h"

namespace tilewright::fuzz {

using ir::Index;
using ir::Value;

void Generator::choose_focused_sizes() {
  const bool has_products = is_focus(Focus::Products) || is_focus(Focus::Chain);
  is_matrix_ = has_products || is_focus(Focus::Copies);
  int64_t m = 4, n = 4, k = 4;
  if (has_products) {
    block_m_ = block_n_ = 64;
    block_k_ = c_.one_of(std::array{16, 32});
    m = c_.one_of(std::array{64, 72}), n = c_.one_of(std::array{72, 64});
    k = block_k_ * (5 + c_.pick(3)) - (c_.chance(30) ? 8 : 0);
  } else if (is_focus(Focus::Rows)) {
    block_m_ = c_.one_of(std::array{1, 2});
    block_n_ = c_.one_of(std::array{256, 128});
    m = 1 + c_.pick(3), n = block_n_ - c_.pick(2) * 5;
  } else if (is_focus(Focus::Masks)) {
    block_m_ = block_n_ = 32;
    m = 20 + c_.pick(40), n = 32;
  } else if (is_focus(Focus::Copies)) {
    block_m_ = c_.one_of(std::array{16, 32}), block_n_ = c_.one_of(std::array{32, 64});
    m = 3 + c_.pick(20), n = 5 + c_.pick(40);
  } else {
    block_m_ = c_.one_of(std::array{4, 8, 5}), block_n_ = c_.one_of(std::array{8, 4, 7});
    m = extent_near(block_m_), n = extent_near(block_n_);
  }
  add_dimension("M", m_, m);
  add_dimension("N", n_, n);
  add_dimension("K", k_, k);
}

void Generator::focused_statement() {
  switch (options_.focus) {
    case Focus::Shared: return c_.chance(35) && inside_loop_ == 0 ? loop() : elementwise();
    case Focus::Rows: return c_.chance(60) ? reduce() : elementwise();
    case Focus::Copies: return c_.chance(50) ? convert_tile() : elementwise();
    default: return elementwise();
  }
}

/// A copy of `wide`, rounded to f16, into an output: what the copy engine may store.
void Generator::write_narrowed(const Tile& wide) {
  const Tile from = wide;
  Value* narrow = b_.alloc(ir::MemorySpace::Fragment, DType::F16, {block_m_, block_n_}, "narrow");
  b_.parallel(extents(Shape::Full), [&](const std::vector<Value*>& i) {
    const std::vector<Index> here = {b_.symbol(i[0]), b_.symbol(i[1])};
    b_.store(narrow, here, fit_dtype({b_.load(from.buffer, here), from.range}, DType::F16).value);
  });
  const int output = add_tensor("O0", DType::F16, {b_.symbol(m_), b_.symbol(n_)}, ir::Direction::Out);
  b_.copy(b_.whole(narrow), global_view(output, Shape::Full));
}

void Generator::focused_block() {
  if (is_focus(Focus::Products) || is_focus(Focus::Chain)) {
    is_focus(Focus::Chain) ? chain() : gemm();
    return write_narrowed(tiles_.back());
  }
  load_tile(Shape::Full);
  if (is_focus(Focus::Shared)) load_tile(Shape::Full);
  statements(2 + c_.pick(4));
  write_outputs();
}

}  // namespace tilewright::fuzz
