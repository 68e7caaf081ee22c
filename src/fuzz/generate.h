// Random well-typed kernels: structure, shapes, dtypes, parameters and data, all from a list of choices.
//
// Guarantees: the kernel is valid (the interpreter's checks find nothing), small enough to run in milliseconds, and,
// for Comparison::Exact, every float operation in it is exact whatever its order.
#pragma once

#include "fuzz/case.h"
#include "fuzz/choices.h"

namespace tilewright::fuzz {

/// The class of operations every case must hold: where a planted mistake sits (plants.def).
enum class Focus : uint8_t {
  Any,
  Shared,    ///< tiles in shared memory that other iterations read, loops that may not run
  Products,  ///< a pipelined product of 16-bit tiles, stored as f16 tiles
  Chain,     ///< two products in one loop
  Rows,      ///< long rows in registers, reduced along them
  Copies,    ///< rows of constant odd extents, copied in vectors
  Masks,     ///< conditions that hold in all of a block but the last one
  Elements   ///< small tiles, many element-wise operations
};

struct GenerateOptions {
  bool math = true;  ///< exp, log, … in bounded cases
  bool narrow_fp8 = false;
  bool matrix =
      false;  ///< some kernels with tiles, types and pitches that matrix instructions and the copy engine take
  Focus focus = Focus::Any;
};

Case generate(Choices& choices, const GenerateOptions& options = {});

}  // namespace tilewright::fuzz
