// An interpreter call as the run-time library's arguments.
#pragma once

#include <vector>

#include "interp/interpreter.h"
#include "runtime/recipe.h"

namespace tilewright::fuzz {

/// Views of a call's arrays; lives no longer than the call.
class RuntimeArguments {
 public:
  RuntimeArguments(const ir::Kernel& kernel, const interp::Call& call, tw_device_kind device = TW_CPU);
  tw_arguments get() const { return {tensors_.data(), tensors_.size(), scalars_.data(), scalars_.size()}; }

 private:
  std::vector<tw_tensor> tensors_;
  std::vector<tw_scalar> scalars_;
};

/// A run-time failure in the compiler's terms.
Diagnostic to_diagnostic(std::string_view code_text, std::string message);

}  // namespace tilewright::fuzz
