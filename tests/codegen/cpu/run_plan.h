// Plans a tile kernel, compiles it, and runs it on plain arrays: what the tests of the CPU planner share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "codegen/cpu/compile.h"
#include "ir/printer.h"
#include "plan/cpu/plan.h"
#include "runtime/object_loader.h"

namespace tilewright::codegen {

/// A tensor argument: bytes and shape; contiguous unless a pitch (in elements, of the last but one axis) is given.
struct TestTensor {
  void* data = nullptr;
  std::vector<int64_t> shape;
  int64_t pitch = 0;
};

inline CpuOptions options_for(const target::Cpu& cpu) {
  CpuOptions options = host_cpu_options();
  options.vector_bits = cpu.vector_bits;
  if (cpu.name != "host") {
    options.cpu = cpu.name;
    options.features.clear();
  }
  return options;
}

class PlannedKernel {
 public:
  explicit PlannedKernel(const ir::Kernel& tile, const plan::cpu::Options& options = {},
                         const target::Cpu& cpu = target::host_cpu()) {
    auto planned = plan::cpu::plan(tile, cpu, options);
    if (!planned) {
      ADD_FAILURE() << planned.error().message;
      return;
    }
    plan_ = std::move(*planned);
    if (std::getenv("TW_TEST_PRINT")) std::fputs(to_text(plan_.vector).c_str(), stderr);
    const auto valid = runtime::check(plan_.recipe);
    if (!valid) ADD_FAILURE() << valid.error().message;
    CpuOptions compile_options = options_for(cpu);
    compile_options.want_text = std::getenv("TW_TEST_ASM") != nullptr;
    auto object = compile_cpu(plan_.vector, compile_options);
    if (!object) {
      ADD_FAILURE() << object.error().message;
      return;
    }
    if (compile_options.want_text) std::fputs(object->assembly.c_str(), stderr);
    object_ = std::move(*object);
    auto loaded = runtime::LoadedObject::load(object_.object);
    if (!loaded) {
      ADD_FAILURE() << loaded.error().message;
      return;
    }
    code_ = std::move(*loaded);
  }

  const plan::cpu::CpuPlan& plan() const { return plan_; }
  const CpuObject& object() const { return object_; }

  /// Runs every launch on this thread. Returns the failed assertion's id or 0.
  int32_t run(const std::vector<TestTensor>& tensors, const std::vector<int64_t>& scalars = {}) {
    prepare(tensors, scalars);
    return launch();
  }

  void prepare(const std::vector<TestTensor>& tensors, const std::vector<int64_t>& scalars = {}) {
    const runtime::Recipe& recipe = plan_.recipe;
    slots_.clear(), pointers_.clear(), workspaces_.clear();
    for (const runtime::Slot& slot : recipe.slots) {
      switch (slot.kind) {
        case runtime::SlotKind::Dim: slots_.push_back(tensors.at(slot.argument).shape.at(slot.axis)); break;
        case runtime::SlotKind::Stride: slots_.push_back(stride(tensors.at(slot.argument), slot.axis)); break;
        case runtime::SlotKind::Scalar: slots_.push_back(scalars.at(slot.argument)); break;
        case runtime::SlotKind::Present: slots_.push_back(tensors.at(slot.argument).data != nullptr); break;
        case runtime::SlotKind::Misalignment:
          slots_.push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensors.at(slot.argument).data) % 64));
          break;
        case runtime::SlotKind::Computed: slots_.push_back(evaluate(slot.value, slots_)); break;
      }
    }
    for (const runtime::Requirement& r : recipe.requirements) EXPECT_NE(evaluate(r.holds, slots_), 0) << r.text;
    for (const TestTensor& t : tensors) pointers_.push_back(t.data);
    for (const runtime::Workspace& w : recipe.workspaces) {
      const auto bytes = static_cast<size_t>(evaluate(w.bytes, slots_));
      workspaces_.emplace_back(bytes + 64, '\x7f');
      auto address = (reinterpret_cast<uintptr_t>(workspaces_.back().data()) + 63) / 64 * 64;
      const auto zeroed = static_cast<size_t>(evaluate(w.zeroed_bytes, slots_));
      std::fill_n(reinterpret_cast<char*>(address), zeroed, '\0');
      pointers_.push_back(reinterpret_cast<void*>(address));
    }
  }

  int32_t launch() {
    for (const runtime::Launch& l : plan_.recipe.launches) {
      int64_t blocks = 1;
      for (const auto& extent : l.grid) blocks *= std::max<int64_t>(evaluate(extent, slots_), 0);
      if (blocks == 0) continue;
      const auto scratch_bytes = static_cast<size_t>(evaluate(l.scratch_bytes, slots_));
      if (scratch_.size() < scratch_bytes + 4096) scratch_.assign(scratch_bytes + 4096, '\x7f');
      const auto address = (reinterpret_cast<uintptr_t>(scratch_.data()) + 4095) / 4096 * 4096;
      const auto entry = reinterpret_cast<tw_cpu_entry>(code_.find(l.symbol));
      if (!entry) {
        ADD_FAILURE() << "no symbol " << l.symbol;
        return -1;
      }
      tw_record record{};
      const tw_launch launch{slots_.data(), pointers_.data(), &record, nullptr, nullptr};
      if (const int32_t id = entry(&launch, 0, blocks, reinterpret_cast<void*>(address)); id != 0) return id;
    }
    return 0;
  }

 private:
  static int64_t stride(const TestTensor& t, uint32_t axis) {
    int64_t s = 1;
    for (size_t d = t.shape.size(); d-- > axis + 1;) s = d + 1 == t.shape.size() && t.pitch ? t.pitch : s * t.shape[d];
    return s;
  }

  plan::cpu::CpuPlan plan_;
  CpuObject object_;
  runtime::LoadedObject code_;
  std::vector<int64_t> slots_;
  std::vector<void*> pointers_;
  std::vector<std::vector<char>> workspaces_;
  std::vector<char> scratch_;
};

}  // namespace tilewright::codegen
