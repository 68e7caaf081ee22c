// The rule every thread program keeps: a register is read only where every path has written it.
//
// Structured control makes the check one walk: behind an `if` what both sides wrote, behind a loop what had been
// written at every break. A guarded write counts as one. Values that one lane computed for itself and others read too
// are found this way whatever the registers happened to hold.
#pragma once

#include "base/diagnostic.h"
#include "ir/thread_program.h"

namespace tilewright::ir::thread {

/// E9309 names the first register and the instruction that reads it.
Status verify(const Program& program);

}  // namespace tilewright::ir::thread
