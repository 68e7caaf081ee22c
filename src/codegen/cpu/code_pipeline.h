// LLVM's code generator without the passes that our kernels do not need: instructions selected, registers given, bytes
// written.
//
// Guarantees: what is left out is left out for this module only, by keeping the passes out of its pass manager; no
// option of LLVM is set, so other users of the same LLVM (and other threads) are not touched. Which passes stay away,
// and why, is one table in the .cpp. Does not: optimise LLVM IR (compile.cpp does, before).
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Target/TargetMachine.h>

#include <string>

namespace tilewright::codegen {

/// The object's or the assembly's bytes; empty when the target cannot write `type`. The module is used up.
std::string generate_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type);

}  // namespace tilewright::codegen
