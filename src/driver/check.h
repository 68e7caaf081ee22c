// What `run --check` does: the interpreter's checks on the program, then the compiled kernel's results against the
// oracle.
//
// Every element must lie within the bound of any correct implementation on the data as given (bound 0, and so bitwise,
// where no order and no rounding can matter); what no bound decides is counted apart. Does not use an independent
// reference: `run` evaluates the kernel's `reference` line, bench/ asks the rivals.
#pragma once

#include <string>
#include <vector>

#include "driver/call.h"
#include "interp/interpreter.h"

namespace tilewright::driver {

/// How one output compared.
struct OutputCheck {
  std::string argument;
  int64_t elements = 0;
  int64_t decided = 0;         ///< elements that have a value and a bound to be held to
  int64_t mismatches = 0;      ///< decided ones outside of it
  int64_t tainted = 0;         ///< elements whose bound is vacuous: a branch or conversion was closer than the rounding
  int64_t unwritten = 0;       ///< elements the program never writes
  double worst_error = 0;      ///< largest |got - expected|
  double worst_ratio = 0;      ///< largest |got - expected| / bound; above 1 is a mismatch
  std::string first_mismatch;  ///< "C[3, 5] is 1.25, expected 1.5 within 1e-06"

  /// No decided element is wrong, and at most one in ten is undecidable.
  bool passed() const { return mismatches == 0 && tainted * 10 <= elements; }
};

struct CheckReport {
  std::vector<Diagnostic> findings;
  std::vector<OutputCheck> outputs;
  std::vector<interp::Expected> expected;  ///< of `outputs`, in their order: values and bounds
  bool inconclusive = false;
  std::string printed;
  bool passed() const;
};

/// `arrays` holds the inputs; `computed` the same arrays after the compiled kernel ran on them.
Result<CheckReport> check_results(const ir::Kernel& kernel, const Arrays& arrays, const Arrays& computed);

/// Compares a result with an array somebody supplied: |got - want| <= tolerance·max(1, |want|), tolerance by dtype.
OutputCheck compare_with(const std::string& argument, const HostTensor& got, const HostTensor& want);

/// One element as a double (integers too).
double element(const HostTensor& tensor, int64_t i);

}  // namespace tilewright::driver
