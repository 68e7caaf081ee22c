#include "fuzz/recipe_call.h"

namespace tilewright::fuzz {

RuntimeArguments::RuntimeArguments(const ir::Kernel& kernel, const interp::Call& call, tw_device_kind device) {
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    if (kernel.tensors[i].direction == ir::Direction::Workspace) continue;
    const interp::TensorRef& t = call.tensors[i];
    tensors_.push_back({.data = t.data,
                        .extents = t.shape.data(),
                        .strides = t.strides.empty() ? nullptr : t.strides.data(),
                        .dtype = static_cast<int32_t>(t.dtype),
                        .rank = static_cast<int32_t>(t.shape.size()),
                        .flags = t.data ? 0u : TW_TENSOR_ABSENT,
                        .device = device});
  }
  for (size_t i = 0; i < call.scalars.size(); ++i) {
    tw_scalar s = {};
    const bool real = is_float(kernel.scalars[i].value->type.dtype);
    s.kind = real ? TW_SCALAR_FLOAT : TW_SCALAR_INTEGER;
    if (real) {
      s.value.floating = call.scalars[i].real;
    } else {
      s.value.integer = call.scalars[i].integer;
    }
    scalars_.push_back(s);
  }
}

Diagnostic to_diagnostic(std::string_view code_text, std::string message) {
  return {.code = DiagnosticCode::E9001, .message = std::string(code_text) + ": " + std::move(message)};
}

}  // namespace tilewright::fuzz
