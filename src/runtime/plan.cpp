#include "runtime/plan.h"

#include <algorithm>
#include <cstring>

namespace tilewright::runtime {
namespace {

/// Adds `bytes` (from an expression: may be negative or huge) at the next aligned place.
bool append(size_t& total, int64_t bytes, size_t& offset) {
  if (bytes < 0) return false;
  offset = total;
  size_t end = 0;
  if (__builtin_add_overflow(total, static_cast<size_t>(bytes), &end) || end > SIZE_MAX / 2) return false;
  total = (end + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  return true;
}

/// Not given is as constant as a number.
bool is_constant(const Expression& expression) {
  return expression.code.empty() || (expression.code.size() == 1 && expression.code[0].op == ExpressionOp::Const);
}

}  // namespace

Plan::Plan(Device& device, Recipe recipe, std::unique_ptr<Code> code)
    : device_(&device), recipe_(std::move(recipe)), code_(std::move(code)), table_(recipe_) {
  has_fixed_layout_ = is_layout_fixed() && lay_out({}, fixed_layout_).has_value();
}

Result<Plan> Plan::load(Device& device, Artefact artefact) {
  if (Status status = runtime::check(artefact.recipe); !status) return std::unexpected(status.error());
  Result<std::unique_ptr<Code>> code = device.load(artefact);
  if (!code) return std::unexpected(code.error());
  return Plan(device, std::move(artefact.recipe), std::move(*code));
}

Result<Plan> Plan::link(Device& device, Recipe recipe, std::span<const tw_cpu_entry> entries) {
  if (Status status = runtime::check(recipe); !status) return std::unexpected(status.error());
  Result<std::unique_ptr<Code>> code = device.link(recipe, entries);
  if (!code) return std::unexpected(code.error());
  return Plan(device, std::move(recipe), std::move(*code));
}

Status Plan::check(const tw_arguments& arguments) const {
  Binding binding;
  return bind(recipe_, arguments, device_->kind(), binding);
}

bool Plan::is_layout_fixed() const {
  return std::ranges::all_of(recipe_.workspaces, [](const Workspace& w) { return is_constant(w.bytes); }) &&
         std::ranges::all_of(recipe_.launches, [](const Launch& l) { return is_constant(l.scratch_bytes); });
}

Status Plan::lay_out(const Binding& binding, Layout& layout) const {
  const auto slots = binding.slot_span(recipe_);
  for (size_t i = 0; i < recipe_.workspaces.size(); ++i) {
    if (!append(layout.total, evaluate(recipe_.workspaces[i].bytes, slots), layout.offsets[i])) {
      return fail(FailureCode::too_large, "workspace " + recipe_.workspaces[i].name + " does not fit any memory");
    }
  }
  int64_t scratch = 0;
  for (const Launch& launch : recipe_.launches) scratch = std::max(scratch, evaluate(launch.scratch_bytes, slots));
  if (scratch == 0) return {};
  size_t ignored = 0;
  int64_t all = 0;
  if (!append(layout.scratch_stride, scratch, ignored) ||
      !multiply_exact(static_cast<int64_t>(layout.scratch_stride), device_->workers(), all) ||
      !append(layout.total, all, layout.scratch_offset)) {
    return fail(FailureCode::too_large, recipe_.kernel + ": its scratch does not fit any memory");
  }
  return {};
}

Result<size_t> Plan::workspace_bytes(const tw_arguments& arguments) const {
  Binding binding;
  if (Status status = bind_shapes(recipe_, arguments, binding); !status) return std::unexpected(status.error());
  Layout layout;
  if (Status status = lay_out(binding, layout); !status) return std::unexpected(status.error());
  return layout.total;
}

Status Plan::infer_extents(const tw_arguments& arguments, size_t index, int64_t* extents) const {
  if (index >= recipe_.tensors.size()) {
    return fail(FailureCode::unknown_argument, recipe_.kernel + " has no tensor " + std::to_string(index));
  }
  Binding binding;
  if (Status status = bind_shapes(recipe_, arguments, binding); !status) return status;
  tensor_extents(recipe_, index, binding, extents);
  return {};
}

Status Plan::zero_workspaces(const Binding& binding, void* stream) const {
  const auto slots = binding.slot_span(recipe_);
  for (size_t i = 0; i < recipe_.workspaces.size(); ++i) {
    const Workspace& workspace = recipe_.workspaces[i];
    const int64_t bytes = std::min(evaluate(workspace.zeroed_bytes, slots), evaluate(workspace.bytes, slots));
    if (bytes <= 0) continue;
    void* const memory = binding.pointers[recipe_.tensors.size() + i];
    if (Status status = device_->zero(memory, static_cast<size_t>(bytes), stream); !status) return status;
  }
  return {};
}

Status Plan::check_workspace(const Layout& layout, const void* workspace, size_t bytes) const {
  if (layout.total == 0) return {};
  if (!workspace || bytes < layout.total) {
    return fail(FailureCode::small_workspace, recipe_.kernel + " needs a workspace of " + std::to_string(layout.total) +
                                                  " bytes for these shapes, got " +
                                                  std::to_string(workspace ? bytes : 0));
  }
  if (reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0) {
    return fail(FailureCode::wrong_alignment, recipe_.kernel + ": the workspace must be 64-byte aligned");
  }
  return {};
}

Status Plan::execute(const tw_arguments& arguments, void* workspace, size_t bytes, void* stream) const {
  Binding binding;
  if (!table_.bind(arguments, device_->kind(), binding)) {
    if (Status status = bind(recipe_, arguments, device_->kind(), binding); !status) return status;
  }
  Layout own_layout;
  if (!has_fixed_layout_) {
    if (Status status = lay_out(binding, own_layout); !status) return status;
  }
  const Layout& layout = has_fixed_layout_ ? fixed_layout_ : own_layout;
  if (Status status = check_workspace(layout, workspace, bytes); !status) return status;
  auto* const base = static_cast<char*>(workspace);
  if (!recipe_.workspaces.empty()) {
    for (size_t i = 0; i < recipe_.workspaces.size(); ++i)
      binding.pointers[recipe_.tensors.size() + i] = base + layout.offsets[i];
    if (Status status = zero_workspaces(binding, stream); !status) return status;
  }
  return code_->run({recipe_,
                     binding.slot_span(recipe_),
                     {binding.pointers, recipe_.tensors.size() + recipe_.workspaces.size()},
                     base + layout.scratch_offset,
                     layout.scratch_stride,
                     stream});
}

}  // namespace tilewright::runtime
