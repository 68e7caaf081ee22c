// The body of `tilewright stage`: reads one request from stdin, does it in this fresh process, answers on what was
// stdout.
#pragma once

#include "candidate/kinds.h"

namespace tilewright::bench {

/// Returns the exit code of the process. stdout is turned to stderr first, so a candidate that prints cannot forge an
/// answer.
int run_stage_child(const candidate::Kinds& kinds);

}  // namespace tilewright::bench
