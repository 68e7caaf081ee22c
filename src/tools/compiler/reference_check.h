// `run --check` against the kernel's own `reference` line: plain float64 loops that share nothing with the compiler.
//
// An output agrees when it lies within twice the interpreter's bound plus a small relative slack of the reference: the
// reference's formula may round where the kernel's does not and the other way round. Undecidable elements are left out.
// Does not: use a rival library (bench does).
#pragma once

#include <string>
#include <vector>

#include "driver/check.h"
#include "driver/program.h"

namespace tilewright::tools {

struct ReferenceCheck {
  std::string argument;
  std::string reference;  ///< as the kernel says it, parameters replaced
  int64_t compared = 0;
  int64_t differing = 0;
  double worst_error = 0;
  std::string first;  ///< "C[3, 5] is 1.25, the reference says 1.5"
};

/// E1080, at the kernel's line, when a reference has an unknown word, argument or shape.
Status check_reference_words(const driver::Program& program);

/// `inputs` before the call, `computed` after it; `check` holds the bounds.
Result<std::vector<ReferenceCheck>> compare_with_reference(const driver::Program& program, const driver::Arrays& inputs,
                                                           const driver::Arrays& computed,
                                                           const driver::CheckReport& check);

}  // namespace tilewright::tools
