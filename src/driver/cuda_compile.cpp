#include "driver/cuda_compile.h"

#include <fmt/format.h>

#include <chrono>

#include "codegen/cuda/assemble.h"
#include "codegen/cuda/emit_ptx.h"
#include "ir/printer.h"
#include "plan/gpu/roofline.h"

namespace tilewright::driver {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The assembler of this process, or why there is none.
const Result<codegen::Assembler>& assembler() {
  static const Result<codegen::Assembler> opened = codegen::Assembler::open();
  return opened;
}

void report_resources(Compilation& out, const codegen::Resources& r, const plan::gpu::GpuPlan& plan,
                      const target::Gpu& gpu) {
  out.facts.push_back(
      {"registers", fmt::format("{} a thread, {} bytes of stack (spills)", r.registers, r.stack_bytes), {}});
  for (const auto& program : plan.programs) {
    const auto o = plan::gpu::occupancy(gpu, program.threads, r.registers, program.shared_bytes);
    out.facts.push_back(
        {"occupancy",
         fmt::format("{} blocks of {} threads a multiprocessor, limited by {} ({} registers a thread, {} "
                     "shared bytes a block)",
                     o.blocks, program.threads, o.limit, r.registers, program.shared_bytes),
         {}});
  }
  for (const std::string& w : r.warnings) out.facts.push_back({"assembler", w, {}});
}

Result<Compilation> compile_now(const ir::Kernel& tile, const CudaCompileOptions& options) {
  Compilation out;
  const double start = now_ms();
  plan::gpu::Options plan_options = options.plan;
  plan_options.overlap_products &= options.for_device;
  auto plan = plan::gpu::plan(tile, options.gpu, plan_options);
  if (!plan) return std::unexpected(plan.error());
  for (auto& f : plan->facts) out.facts.push_back({std::move(f.what), std::move(f.why), std::move(f.location)});
  for (auto& f : plan::gpu::roofline_facts(tile, options.gpu))
    out.facts.push_back({std::move(f.what), std::move(f.why), std::move(f.location)});
  out.times.plan_ms = now_ms() - start;
  auto ptx = codegen::emit_ptx(plan->programs, {.architecture = options.gpu.architecture});
  if (!ptx) return std::unexpected(ptx.error());
  out.times.lower_ms = now_ms() - start - out.times.plan_ms;
  bool whole_program = false;
  for (const auto& program : plan->programs) whole_program |= program.whole_program;
  runtime::CodeKind kind = runtime::CodeKind::Ptx;
  std::string code = *ptx;
  if (!options.assembles) {
    out.facts.push_back({"machine code", "none: the stages before it were asked for", {}});
  } else if (!assembler()) {
    out.facts.push_back({"machine code", "by the driver when loaded: " + assembler().error().message, {}});
  } else if (whole_program) {
    out.facts.push_back(
        {"machine code", "by the driver when loaded: only it reallocates registers between warpgroups", {}});
  } else {
    const double before = now_ms();
    auto cubin = assembler()->assemble(*ptx, options.gpu.name);
    if (!cubin) return std::unexpected(cubin.error());
    out.times.emit_ms = now_ms() - before;
    report_resources(out, cubin->resources, *plan, options.gpu);
    kind = runtime::CodeKind::Cubin;
    code = cubin->image;
    if (options.want_stages) out.stages.push_back({"cubin", cubin->image});
  }
  if (options.want_stages) {
    std::string thread;
    for (const auto& program : plan->programs) thread += ir::thread::to_text(program) + "\n";
    std::string drawn;
    for (const auto& layout : plan->layouts) {
      drawn += to_text(layout) + "\n";
      out.stages.push_back({"layout." + layout.name + ".svg", to_svg(layout)});
    }
    out.stages.insert(out.stages.begin(), {"layout", std::move(drawn)});
    out.stages.insert(out.stages.begin(), {{"tile", ir::to_text(tile)}, {"thread", std::move(thread)}, {"ptx", *ptx}});
  }
  out.artefact = {.recipe = std::move(plan->recipe), .kind = kind, .code = std::move(code)};
  return out;
}

}  // namespace

void open_assembler() { static_cast<void>(assembler()); }

Key128 cuda_compilation_key(const ir::Kernel& tile, const CudaCompileOptions& options) {
  const target::Gpu& gpu = options.gpu;
  const plan::gpu::Options& plan = options.plan;
  return hash128(fmt::format("{}cuda {} {} {} {} {} {} {}\n{} {} {} {} {} {} {}\n", kernel_identity(tile), gpu.name,
                             gpu.architecture, gpu.has_hopper, gpu.multiprocessors, gpu.shared_bytes_per_block,
                             gpu.shared_bytes_per_multiprocessor, gpu.registers_per_multiprocessor, plan.tensor_cores,
                             plan.hopper, plan.async_copies, plan.overlap_products, plan.wide_indices, plan.aligned,
                             options.for_device));
}

Result<Compilation> compile_cuda(const ir::Kernel& tile, const CudaCompileOptions& options) {
  const auto make = [&] { return compile_now(tile, options); };
  if (!options.cache || options.want_stages || !options.assembles || !options.plan.plant.is_empty()) return make();
  return compile_through(*options.cache, cuda_compilation_key(tile, options), make);
}

}  // namespace tilewright::driver
