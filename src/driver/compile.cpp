#include "driver/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <utility>

#include "cache/kernel_cache.h"
#include "codegen/backend.h"
#include "driver/toolchain.h"
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

std::string kernel_identity(const ir::Kernel& tile) {
  std::string text = fmt::format("{}\n{}\n{}\n", to_hex(ir::content_key(tile)), toolchain_identity(), tile.name);
  // The recipe carries names and texts, so two kernels that differ in nothing else have an artefact each.
  for (const ir::Dimension& dimension : tile.dimensions) text += dimension.name + "\n";
  for (const ir::TensorArgument& tensor : tile.tensors) text += tensor.buffer->name + "\n";
  for (const ir::ScalarArgument& scalar : tile.scalars) text += scalar.value->name + "\n";
  for (const ir::Requirement& requirement : tile.requirements) text += requirement.text + "\n";
  for (const ir::Text& message : tile.texts) text += fmt::format("{} {}\n", to_string(message.location), message.text);
  return text;
}

Key128 compilation_key(const ir::Kernel& tile, const CompileOptions& options) {
  std::string text = kernel_identity(tile);
  const target::Cpu& cpu = options.cpu;
  text += fmt::format("{} {} {} {} {} {} {} {}\n", cpu.name, fmt::join(cpu.features, ","), cpu.vector_bits,
                      cpu.vector_registers, cpu.l1_bytes, cpu.l2_bytes, cpu.l3_bytes, cpu.cores);
  const plan::cpu::Options& plan = options.plan;
  text += fmt::format("{} {} {} {} {}\n", plan.fuse, plan.micro_kernels, plan.share_panels,
                      fmt::join(plan.disabled_passes, ","), options.line_tables);
  return hash128(text);
}

namespace {

Result<Compilation> compile_now(const ir::Kernel& tile, const CompileOptions& options) {
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

}  // namespace

Result<Compilation> compile(const ir::Kernel& tile, const CompileOptions& options) {
  // A planted mutant or a wish for the stages is nothing to keep.
  if (!options.cache || options.want_stages || !options.plan.plant.is_empty()) return compile_now(tile, options);
  return compile_through(*options.cache, compilation_key(tile, options), [&] { return compile_now(tile, options); });
}

Result<Compilation> compile_through(cache::KernelCache& cache, const Key128& key,
                                    const std::function<Result<Compilation>()>& make) {
  Stopwatch watch;
  Compilation out;
  out.key = key;
  bool was_made = false;
  const auto found = cache.get_or_make(key, [&]() -> Result<std::string> {
    auto made = make();
    if (!made) return std::unexpected(made.error());
    made->key = key;
    out = std::move(*made);
    was_made = true;
    return runtime::serialise(out.artefact);
  });
  if (!found) return std::unexpected(found.error());
  if (was_made) {
    out.times.cache_ms = std::max(0.0, watch.lap_ms() - out.times.total_ms() - out.times.open_module_ms);
    return out;
  }
  auto artefact = runtime::parse_artefact(*found->bytes);
  if (!artefact) return make();  // of another format: the key should have told
  out.artefact = std::move(*artefact);
  out.is_from_cache = true;
  out.times.cache_ms = watch.lap_ms();
  return out;
}

}  // namespace tilewright::driver
