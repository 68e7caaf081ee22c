#include "driver/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <utility>

#include "codegen/backend.h"
#include "ir/printer.h"

namespace tilewright::driver {
namespace {

class Stopwatch {
 public:
  double lap_ms() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

codegen::CpuOptions code_options(const CompileOptions& options) {
  codegen::CpuOptions out;
  out.cpu = "x86-64";
  for (const std::string& feature : options.cpu.features) out.features.push_back("+" + feature);
  out.vector_bits = options.cpu.vector_bits;
  out.line_tables = options.line_tables;
  out.want_text = options.want_stages;
  return out;
}

void keep_stages(Compilation& out, const ir::Kernel& tile, const plan::cpu::CpuPlan& plan,
                 const codegen::CpuObject& object) {
  out.stages = {{"tile", ir::to_text(tile)},
                {"planned", ir::to_text(plan.planned)},
                {"vector", ir::to_text(plan.vector)},
                {"llvm", object.llvm_ir},
                {"asm", object.assembly},
                {"object", object.object}};
}

}  // namespace

std::string target_name(const target::Cpu& cpu) { return "cpu:" + cpu.name; }

Result<Compilation> compile(const ir::Kernel& tile, const CompileOptions& options) {
  Compilation out;
  Stopwatch watch;
  auto plan = plan::cpu::plan(tile, options.cpu, options.plan);
  if (!plan) return std::unexpected(plan.error());
  out.times.plan_ms = watch.lap_ms();
  out.facts = std::move(plan->facts);
  const auto backend = codegen::open_backend();
  if (!backend) return std::unexpected(backend.error());
  out.times.open_module_ms = watch.lap_ms();
  auto object = (*backend)->compile_cpu(plan->vector, code_options(options));
  if (!object) return std::unexpected(object.error());
  out.times.lower_ms = object->lower_ms;
  out.times.optimise_ms = object->optimise_ms;
  out.times.emit_ms = object->emit_ms;
  if (options.want_stages) keep_stages(out, tile, *plan, *object);
  plan->recipe.target = target_name(options.cpu);
  out.artefact = {
      .recipe = std::move(plan->recipe), .kind = runtime::CodeKind::ElfObject, .code = std::move(object->object)};
  return out;
}

}  // namespace tilewright::driver
