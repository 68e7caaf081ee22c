// What `run --check` does: the interpreter's checks on the program, then the compiled kernel's results against the
// oracle.
//
// Two comparisons. *Exact*: data are small integers, and every element must be bitwise what the language declares,
// unless its value depends on an order or a rounding (the bounded run says so). *Bounded*: data are as given, and every
// element must lie within the bound of any correct implementation. Does not use an independent reference: bench/ does.
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
  int64_t mismatches = 0;
  int64_t tainted = 0;         ///< elements whose bound is vacuous: a branch or conversion was closer than the rounding
  double worst_error = 0;      ///< largest |got - expected|
  double worst_ratio = 0;      ///< largest |got - expected| / bound; above 1 is a mismatch
  std::string first_mismatch;  ///< "C[3, 5] is 1.25, expected 1.5 ± 1e-06"
};

struct CheckReport {
  std::vector<Diagnostic> findings;
  std::vector<OutputCheck> outputs;
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
