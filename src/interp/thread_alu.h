// What the arithmetic instructions of thread programs compute, one lane at a time, on register bits.
#pragma once

#include <cstdint>

#include "ir/thread_program.h"

namespace tilewright::interp {

/// Result bits of an Alu instruction with operands a, b, c (those it has).
uint64_t thread_alu(const ir::thread::Inst& inst, uint64_t a, uint64_t b, uint64_t c);
/// New value of a memory cell: `kind` applied to `old` and `operand`.
uint64_t thread_atomic(ir::thread::AtomicKind kind, ir::thread::Scalar type, uint64_t old, uint64_t operand);
/// The number a matrix operand's bits mean.
double thread_number(ir::thread::Scalar type, uint64_t bits);

}  // namespace tilewright::interp
