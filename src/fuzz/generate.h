// Random well-typed kernels: structure, shapes, dtypes, parameters and data, all from a list of choices.
//
// Guarantees: the kernel is valid (the interpreter's checks find nothing), small enough to run in milliseconds, and,
// for Comparison::Exact, every float operation in it is exact whatever its order.
#pragma once

#include "fuzz/case.h"
#include "fuzz/choices.h"

namespace tilewright::fuzz {

struct GenerateOptions {
  bool math = true;  ///< exp, log, … in bounded cases
  bool narrow_fp8 = false;
  bool matrix = false;  ///< some kernels with tiles, types and pitches that matrix instructions and the copy engine take
};

Case generate(Choices& choices, const GenerateOptions& options = {});

}  // namespace tilewright::fuzz
