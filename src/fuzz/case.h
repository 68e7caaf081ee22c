// One fuzz case: a kernel and everything needed to call it, made from a list of choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interp/interpreter.h"
#include "ir/ir.h"

namespace tilewright::fuzz {

/// Exact: data are small integers and dyadics, and every operation is exact in any order, so results are bitwise equal.
/// Bounded: random data; results lie within the interpreter's bound.
enum class Comparison : uint8_t { Exact, Bounded };

/// What a tensor's elements are multiples of and how large they get.
struct Range {
  double limit = 4;
  int fraction = 0;  ///< multiples of 2^-fraction
};

struct TensorPlan {
  Range range;
  int64_t padding = 0;  ///< extra elements of every row's pitch
};

struct Case {
  ir::Kernel kernel;
  Comparison comparison = Comparison::Exact;
  std::vector<int64_t> dimensions;  ///< by position in Kernel::dimensions
  std::vector<TensorPlan> tensors;  ///< by position in Kernel::tensors
  std::vector<ir::ConstantAttributes> scalars;
  uint64_t data_seed = 1;
};

/// The arrays of one call. Every tensor lies between canaries, and the gaps of its pitch are canaries too.
class Arrays {
 public:
  explicit Arrays(const Case& c);
  interp::Call& call() { return call_; }
  const interp::Call& call() const { return call_; }
  /// The position of a tensor around or between whose elements something was written; -1: none.
  int damaged_canary() const;

 private:
  struct Slab {
    std::vector<std::byte> bytes;
    std::vector<bool> is_element;
  };
  std::vector<Slab> slabs_;
  interp::Call call_;
};

}  // namespace tilewright::fuzz
