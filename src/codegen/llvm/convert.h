// Conversions between element types, as LLVM instructions: every pair of dtypes, scalars and vectors, without library
// calls.
//
// Register representation: bool is i1, f16 is half, bf16, e4m3 and e5m2 are raw integer bits; memory holds bool as a
// byte. Float to integer saturates and NaN gives 0; float to a narrower float rounds once to nearest even.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "base/dtype.h"

namespace tilewright::codegen {

llvm::Type* register_type(llvm::LLVMContext& context, DType dtype, int lanes);
llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype, int lanes);

llvm::Value* convert(llvm::IRBuilder<>& builder, llvm::Value* x, DType from, DType to);
/// Between what memory holds and the register representation of the same dtype.
llvm::Value* from_memory(llvm::IRBuilder<>& builder, llvm::Value* x, DType dtype);
llvm::Value* to_memory(llvm::IRBuilder<>& builder, llvm::Value* x, DType dtype);

}  // namespace tilewright::codegen
