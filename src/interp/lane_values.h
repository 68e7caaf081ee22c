// The values of one machine: a column per SSA value, index expressions over them, and the pure operations, which mean
// the same in every phase. Each machine adds its own memory and control on top.
#pragma once

#include <deque>
#include <vector>

#include "interp/column.h"
#include "ir/ir.h"

namespace tilewright::interp {

class LaneValues {
 public:
  LaneValues(const ir::Kernel& kernel, Mode mode);

  Column& operator[](const ir::Value* v) { return columns_[v->id]; }
  const Column& operator[](const ir::Value* v) const { return columns_[v->id]; }
  Mode mode() const { return mode_; }

  /// True when every symbol of x is uniform.
  bool is_uniform(ir::Index x) const;
  /// The value of a uniform expression.
  int64_t uniform(ir::Index x) const;
  /// x on every lane, as i64 (tainted where a symbol is).
  void evaluate(ir::Index x, Column& out);
  /// True when a symbol of x is tainted on `lane`.
  bool is_tainted(ir::Index x, int64_t lane) const;

  /// Runs an operation whose result depends on its operands alone. False when `op` is not one.
  bool run_pure(const ir::Op& op);

 private:
  struct Term {
    const int64_t* lanes = nullptr;  ///< null: uniform
    int64_t value = 0;
  };
  Term term(const ir::IndexNode& n, int64_t count);
  Term combine(const ir::IndexNode& n, int64_t count);
  std::vector<int64_t>& scratch(int64_t count);
  void shuffle(const ir::Op& op, Column& out);
  void reduce_lanes(const ir::Op& op, Column& out);

  Mode mode_;
  std::vector<Column> columns_;
  std::deque<std::vector<int64_t>> scratch_;
  size_t scratch_used_ = 0;
};

}  // namespace tilewright::interp
