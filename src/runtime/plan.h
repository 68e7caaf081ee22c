// A plan: loaded code and its recipe, ready to run on any arguments of its class.
//
// Immutable. execute() checks the arguments and runs; it never compiles, loads, allocates, locks or synchronises (a
// failure allocates its message). Concurrent executions need distinct workspaces and nothing else. The device must
// outlive it.
#pragma once

#include <memory>

#include "runtime/argument_table.h"
#include "runtime/device.h"

namespace tilewright::runtime {

class Plan {
 public:
  static Result<Plan> load(Device& device, Artefact artefact);
  static Result<Plan> link(Device& device, Recipe recipe, std::span<const tw_cpu_entry> entries);

  const Recipe& recipe() const { return recipe_; }
  Device& device() const { return *device_; }

  /// All checks of execute() without running.
  Status check(const tw_arguments& arguments) const;

  /// Bytes of workspace that executing on these shapes takes: the kernel's workspaces and each worker's scratch.
  Result<size_t> workspace_bytes(const tw_arguments& arguments) const;

  /// The extents of tensor `index`, worked out from the others; `extents` has room for its rank.
  Status infer_extents(const tw_arguments& arguments, size_t index, int64_t* extents) const;

  /// `workspace` is 64-byte aligned, at least workspace_bytes(), and used by nobody else during the call.
  Status execute(const tw_arguments& arguments, void* workspace, size_t bytes, void* stream) const;

 private:
  Plan(Device& device, Recipe recipe, std::unique_ptr<Code> code);

  /// Offsets inside the workspace; `total` includes scratch.
  struct Layout {
    size_t offsets[kMaxWorkspaces];
    size_t scratch_offset = 0;
    size_t scratch_stride = 0;
    size_t total = 0;
  };
  bool is_layout_fixed() const;
  Status lay_out(const Binding& binding, Layout& layout) const;
  Status check_workspace(const Layout& layout, const void* workspace, size_t bytes) const;
  Status zero_workspaces(const Binding& binding, void* stream) const;

  Device* device_;
  Recipe recipe_;
  std::unique_ptr<Code> code_;
  ArgumentTable table_;
  bool has_fixed_layout_ = false;  ///< the same for all shapes
  Layout fixed_layout_;
};

}  // namespace tilewright::runtime
