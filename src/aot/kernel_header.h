// The C header beside an object that was compiled ahead of time.
//
// It declares the object's entries, holds the launch recipe as bytes, and gives the kernel three functions:
// <kernel>_load(device, &plan), <kernel>_workspace_bytes(plan, tensors…, scalars…, &bytes) and
// <kernel>_run(plan, tensors…, scalars…, workspace, bytes, stream). A program that includes it and links the object
// needs the run-time library only. Valid C11 and C++17.
#pragma once

#include <string>

#include "runtime/artefact.h"

namespace tilewright::aot {

/// `source` names the file the kernel came from, for the first line. The recipe must be for a CPU.
std::string kernel_header(const runtime::Recipe& recipe, const std::string& source);

/// What a kernel's files, functions and symbols are called: its name with everything else than letters, digits and '_'
/// turned into '_'.
std::string c_name(const std::string& kernel);

}  // namespace tilewright::aot
