#include <algorithm>

#include "fuzz/recipe_call.h"
#include "fuzz/subject.h"
#include "interp/vector_machine.h"
#include "plan/cpu/plan.h"
#include "runtime/binding.h"

namespace tilewright::fuzz {
namespace {

class PlannedSubject : public Subject {
 public:
  std::string name() const override { return "CPU plan, interpreted"; }

  Status run(const ir::Kernel& kernel, const interp::Call& call, const Plant& plant) override {
    const auto plan = plan::cpu::plan(kernel, target::host_cpu(), {.plant = plant});
    if (!plan) return std::unexpected(plan.error());
    const runtime::Recipe& recipe = plan->recipe;
    const RuntimeArguments arguments(kernel, call);
    runtime::Binding binding;
    if (const auto bound = runtime::bind(recipe, arguments.get(), TW_CPU, binding); !bound) {
      return std::unexpected(to_diagnostic(runtime::code_text(bound.error().code), bound.error().message));
    }
    interp::LaunchEnvironment environment;
    const auto slots = binding.slot_span(recipe);
    environment.slots.assign(slots.begin(), slots.end());
    for (size_t i = 0; i < recipe.tensors.size(); ++i) {
      const runtime::Binding::Range range = binding.ranges[i];
      environment.pointers.push_back({.data = static_cast<std::byte*>(binding.pointers[i]),
                                      .size = static_cast<int64_t>(range.high - range.low),
                                      .name = recipe.tensors[i].name,
                                      .writable = recipe.tensors[i].access != runtime::Access::In});
    }
    std::vector<std::vector<std::byte>> workspaces;
    for (const runtime::Workspace& w : recipe.workspaces) {
      const int64_t bytes = evaluate(w.bytes, slots), zeroed = std::min(evaluate(w.zeroed_bytes, slots), bytes);
      auto& memory = workspaces.emplace_back(static_cast<size_t>(bytes), std::byte{0xFF});
      std::fill_n(memory.begin(), zeroed, std::byte{0});
      environment.pointers.push_back({.data = memory.data(), .size = bytes, .name = w.name});
    }
    for (const runtime::Launch& launch : recipe.launches) environment.launches.push_back(launch.symbol);
    const auto outcome = interp::run_vector(plan->vector, environment);
    if (!outcome) return std::unexpected(outcome.error());
    return {};
  }
};

}  // namespace

std::unique_ptr<Subject> make_planned_subject() { return std::make_unique<PlannedSubject>(); }

}  // namespace tilewright::fuzz
