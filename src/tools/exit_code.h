// The exit codes of the command: one meaning each, for every subcommand.
#pragma once

#include "base/diagnostic.h"

namespace tilewright::tools {

enum class ExitCode : int {
  Ok = 0,                  ///< done; ADOPT
  Internal = 1,            ///< our bug, or the environment failed us
  Usage = 2,               ///< wrong command line or malformed input
  Incorrect = 3,           ///< a wrong result, or an unfair comparison
  InvalidMeasurement = 4,  ///< noise, throttling, a timer that disagrees, faster than the physical floor
  Regression = 5,          ///< slower than the reference point
  Insufficient = 6,        ///< inconclusive, not enough evidence, or a blind oracle
  Stale = 7,               ///< a stale or refused record
  Reject = 8,              ///< the decision is not to adopt
  PolicyViolation = 9,     ///< a dispatch policy's precondition does not hold
};

/// The code a failed command leaves with: E1xxx and E2xxx are the user's input (2), candidates have their own, the rest is ours (1).
ExitCode exit_code(const Diagnostic& diagnostic);

}  // namespace tilewright::tools
