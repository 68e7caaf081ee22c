// Integer dot products of the vector phase (`fma` on integers) as the CPU's instruction.
//
// Chosen by the factors' width and the vector's: 8 bits vpdpbusd (a signed, b unsigned), 16 bits vpmaddwd and an
// addition. Does not do: checking that the CPU has it; the planner asked target/cpu_dot.h.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace tilewright::codegen {

/// `a`, `b`: factors, as many bits as `sum`, a vector of i32. Null for a width no instruction has.
llvm::Value* lower_dot(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y, llvm::Value* sum);

}  // namespace tilewright::codegen
