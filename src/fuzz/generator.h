// The generator's state; internal to fuzz/generate*.cpp.
//
// A kernel has a grid over M and N, and in each block a pool of initialised tiles: full [block_M, block_N], per row
// [block_M] and per column [block_N]. Statements turn tiles into tiles; at the end every output takes one. In exact
// cases each float carries a Range, and `fit` clamps it before it could become inexact.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/generate.h"
#include "ir/builder.h"

namespace tilewright::fuzz {

/// The extents of a tile, by what they run over.
enum class Shape : uint8_t { Full, Row, Column };

struct Tile {
  ir::Value* buffer = nullptr;
  DType dtype = DType::F32;
  Shape shape = Shape::Full;
  Range range;
  bool is_fragment = false;
};

/// A scalar expression inside `parallel` or at block level.
struct Term {
  ir::Value* value = nullptr;
  Range range;
  DType dtype() const { return value->type.dtype; }
};

class Generator {
 public:
  Generator(Choices& choices, const GenerateOptions& options) : c_(choices), options_(options) {}
  Case run();

 private:
  // generate.cpp: kernel, arguments, outputs.
  void choose_sizes();
  void add_dimension(const char* name, ir::Value*& value, int64_t extent);
  int add_tensor(const std::string& name, DType dtype, std::vector<ir::Index> shape, ir::Direction direction);
  void block();
  void grid(const std::function<void()>& body);
  int threads();
  ir::Index columns() const;
  void first_grid();
  void write_outputs();
  void write_output(const Tile& tile, int number);
  int64_t extent_near(int64_t tile);
  int64_t aligning_padding(const std::vector<ir::Index>& shape) const;
  DType any_dtype();
  DType float_dtype();

  // generate_focus.cpp: cases that hold one class of operations.
  bool is_focus(Focus f) const { return options_.focus == f; }
  void choose_focused_sizes();
  void focused_block();
  void focused_statement();
  void write_narrowed(const Tile& wide);

  // generate_statement.cpp: one statement at block level.
  void statements(int count);
  void statement();
  Tile& load_tile(Shape shape);
  void convert_tile();
  void fill_tile();
  void elementwise();
  void reduce();
  void reduce_arg();
  void scan();
  void matrix_statement();
  void gemm();
  bool gemm_of_tiles();
  void chain();
  void branch();
  void loop();
  void atomic();
  Tile& new_tile(DType dtype, Shape shape);
  int fragment_share() const;
  std::pair<DType, DType> operand_types(bool bytes_only, bool wide);
  Tile& any_tile(Shape shape);
  Tile* find_tile(Shape shape, bool (*wanted)(DType));
  std::vector<ir::Index> extents(Shape shape) const;
  ir::View global_view(int tensor, Shape shape) const;

  // generate_expression.cpp: scalar expressions.
  Term expression(int depth);
  Term expression_of(DType dtype, int depth);
  Term leaf();
  Term scalar_argument();
  Term accumulated();
  Term float_operation(Term x, int depth);
  Term integer_operation(Term x, int depth);
  Term math(Term x);
  Term condition(int depth);
  ir::Index computed_row();
  Term convert(Term x, DType to);
  Term fit(Term x, Range room);
  Term fit_dtype(Term x, DType dtype);
  Range room_of(DType dtype) const;
  bool is_exact_case() const { return out_.comparison == Comparison::Exact; }
  void store(const Tile& tile, Term value, bool keep_range);

  Choices& c_;
  GenerateOptions options_;
  Case out_;
  ir::Builder b_{out_.kernel};
  ir::Value *m_ = nullptr, *n_ = nullptr, *k_ = nullptr;
  int64_t block_m_ = 1, block_n_ = 1, block_k_ = 1;
  ir::Value *bx_ = nullptr, *by_ = nullptr;
  std::deque<Tile> tiles_;
  std::vector<ir::Index> iteration_;  ///< variables of the `parallel` being written
  Shape iteration_shape_ = Shape::Full;
  const Tile* written_ = nullptr;  ///< the tile this `parallel` stores to
  int inside_loop_ = 0;
  bool is_matrix_ = false;  ///< this kernel suits matrix instructions
  int workspace_ = -1;      ///< what the first grid wrote for the second
  Range workspace_range_;
};

}  // namespace tilewright::fuzz
