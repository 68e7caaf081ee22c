// expand_math (vector -> vector): mathematical functions become additions, multiplications, fma and bit operations.
//
//   %y = unary %x {op = exp2} : <16 x f32>   =>   %t = binary %x, %magic {op = add} …  %y = select %in_range, %r, %over
//
// Guarantees for f32 and f64, any lanes: no call, no table, no branch; NaN gives NaN and infinities their limits.
// Errors, in units in the last place of the result, measured against MPFR by tests/driver/math_accuracy_test (results
// below the smallest normal number may become zero where noted):
//   exp2, exp 2 (flush) · log, log2 2 · tanh 4 · erf 4 · sigmoid 4 (flush) · rsqrt 2 · pow 2 in f32, 16 in f64 (flush)
//   sin, cos 2 ulp or 2^-23 (f64: 2^-52) absolute, for |x| <= 32768; beyond that any value in [-1, 1]
// exp and exp2 of whole AVX-512 vectors of f32 stay: the code generator has instructions for them
// (codegen/llvm/exponential.h).
// Polynomials are minimax fits by Remez's exchange; ranges are reduced as in Cody and Waite, "Software Manual for the
// Elementary Functions", 1980.
#pragma once

#include "base/plant.h"
#include "ir/ir.h"
#include "target/cpu.h"

namespace tilewright::plan::cpu {

/// Replaces every exp, exp2, log, log2, tanh, erf, sigmoid, rsqrt, sin, cos and pow in `kernel` (phase vector), in
/// place.
void expand_math(ir::Kernel& kernel, const target::Cpu& cpu, const Plant& plant = {});

}  // namespace tilewright::plan::cpu
