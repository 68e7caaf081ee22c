// exp and exp2 of sixteen f32 with AVX-512's scaling by a power of two, which needs no bit operations and knows
// infinities: 13 and 10 instructions.
//
// The errors are those of plan/cpu/expand_math.h, which leaves these two to the code generator where the CPU has the
// instructions. Results below the smallest normal number are 0. Source: Intel 64 and IA-32 Architectures Software
// Developer's Manual 2, VSCALEFPS.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace tilewright::codegen {

/// e^x, or 2^x. Null for another type than sixteen f32.
llvm::Value* lower_exp(llvm::IRBuilder<>& b, llvm::Value* x);
llvm::Value* lower_exp2(llvm::IRBuilder<>& b, llvm::Value* x);

}  // namespace tilewright::codegen
