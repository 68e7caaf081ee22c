// The reference interpreter of the tile phase: the oracle every compiled kernel is compared with, and the checker
// behind `run --check`.
//
// Two modes. *Values* computes what the language declares, operation by operation: for data on which every order gives
// the same result, outputs are bitwise what any correct implementation writes. *Bounded* carries, per float, a float64
// value and a rigorous bound of how far any correct implementation may be from it (Outcome::expected).
//
// With `check`, the outcome lists what is wrong with the program, each at its line, with the element and the two
// iterations or blocks: races and communication between `parallel` iterations, races between blocks, accesses out of
// bounds (unless guarded or excluded), reads of uninitialised memory, integer division by zero, overlapping copies,
// false `assume` and `assert`, outputs left unwritten.
//
// Blocks run one after another; a run always ends (step_limit). Does not: time anything, know any target.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "interp/column.h"
#include "ir/ir.h"

namespace tilewright::interp {

/// One tensor argument, by position in Kernel::tensors. `strides` count elements; empty means dense row-major. `data`
/// may be null for a workspace (made here) and for an optional tensor that is absent.
struct TensorRef {
  DType dtype = DType::F32;
  void* data = nullptr;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

struct Call {
  std::vector<TensorRef> tensors;
  std::vector<ir::ConstantAttributes> scalars;     ///< by position in Kernel::scalars; missing: its default
  std::vector<std::optional<int64_t>> dimensions;  ///< by position; only for those no tensor binds
};

struct Options {
  Mode mode = Mode::Values;
  bool check = false;
  uint64_t seed = 0;                 ///< not 0: blocks run in a random order
  int64_t step_limit = 200'000'000;  ///< operations executed (one per block and batch of iterations)
  int64_t turn_limit = 1'000'000;    ///< of one execution of a `while`
  int64_t batch = 2048;              ///< iterations of a `parallel` evaluated at once
};

/// One output of a bounded run, dense row-major.
struct Expected {
  Column elements;
  std::vector<uint8_t> written;
};

struct Outcome {
  std::vector<Diagnostic> findings;  ///< empty: nothing wrong was seen
  std::string printed;
  int64_t element_operations = 0;
  bool inconclusive = false;       ///< bounded: an address or loop depended on rounding; nothing can be said
  std::vector<Expected> expected;  ///< by position in Kernel::tensors; filled for everything but inputs
};

/// Runs `kernel` on host arrays; outputs are written in place. Fails when the call does not fit the kernel (E1212), the
/// step limit is reached (E1209), or an operation has no meaning here (E1211).
Result<Outcome> run(const ir::Kernel& kernel, const Call& call, const Options& options = {});

/// The value of every dimension of `kernel` for these shapes (E1212 names the one that does not fit).
Result<std::vector<int64_t>> bind_dimensions(const ir::Kernel& kernel, const Call& call);

}  // namespace tilewright::interp
