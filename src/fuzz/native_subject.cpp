#include "codegen/backend.h"
#include "fuzz/recipe_call.h"
#include "fuzz/subject.h"
#include "plan/cpu/plan.h"
#include "runtime/plan.h"

namespace tilewright::fuzz {
namespace {

std::unexpected<Diagnostic> to_error(const runtime::Failure& failure) {
  return std::unexpected(to_diagnostic(runtime::code_text(failure.code), failure.message));
}

/// Planner, code generator and run-time library, without the cache: nothing a case does can depend on another.
class NativeSubject : public Subject {
 public:
  explicit NativeSubject(const codegen::Backend& backend) : backend_(backend), cpu_(target::host_cpu()) {
    options_.cpu = "x86-64";
    for (const std::string& feature : cpu_.features) options_.features.push_back("+" + feature);
    options_.vector_bits = cpu_.vector_bits;
    options_.line_tables = false;
  }
  std::string name() const override { return "compiled for " + cpu_.name; }

  Status run(const ir::Kernel& kernel, const interp::Call& call, const Plant& plant) override {
    // A child process must make its own threads.
    if (!device_) device_ = runtime::open_cpu({.threads = 2});
    auto planned = plan::cpu::plan(kernel, cpu_, {.plant = plant});
    if (!planned) return std::unexpected(planned.error());
    options_.plant = plant;
    auto object = backend_.compile_cpu(planned->vector, options_);
    if (!object) return std::unexpected(object.error());
    runtime::Artefact artefact = {.recipe = std::move(planned->recipe), .code = std::move(object->object)};
    const auto plan = runtime::Plan::load(*device_, std::move(artefact));
    if (!plan) return to_error(plan.error());
    const RuntimeArguments arguments(kernel, call);
    const auto bytes = plan->workspace_bytes(arguments.get());
    if (!bytes) return to_error(bytes.error());
    std::vector<std::byte> workspace(*bytes + 64, std::byte{0xFF});
    const auto base = (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64;
    const auto done = plan->execute(arguments.get(), reinterpret_cast<void*>(base), *bytes, nullptr);
    if (!done) return to_error(done.error());
    return {};
  }

 private:
  const codegen::Backend& backend_;
  target::Cpu cpu_;
  codegen::CpuOptions options_;
  std::unique_ptr<runtime::Device> device_;
};

}  // namespace

Result<std::unique_ptr<Subject>> make_native_subject() {
  const auto backend = codegen::open_backend();
  if (!backend) return std::unexpected(backend.error());
  return std::make_unique<NativeSubject>(**backend);
}

}  // namespace tilewright::fuzz
