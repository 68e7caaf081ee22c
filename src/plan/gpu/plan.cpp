#include "plan/gpu/plan.h"

#include <fmt/format.h>

#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {

Result<GpuPlan> plan(const ir::Kernel& tile, const target::Gpu& gpu, const Options& options) {
  GpuPlan out;
  out.recipe.kernel = tile.name;
  out.recipe.target = "cuda:" + gpu.name;
  ir::Kernel slots;
  const cpu::Arguments arguments(tile, slots, out.recipe);
  if (options.aligned) {
    for (auto& t : out.recipe.tensors) {
      t.facts.alignment = 16;
      t.facts.pitch_alignment = 16;
    }
  }
  for (const ir::Op* grid : tile.body->ops) {
    if (grid->kind != ir::OpKind::Grid) {
      return fail_at(DiagnosticCode::E2101, grid->location,
                     fmt::format("no lowering for CUDA: {} outside a grid", ir::info(grid->kind).mnemonic));
    }
    const std::string name = fmt::format("tw_{}_{}", tile.name, out.programs.size());
    runtime::Launch launch;
    try {
      std::string why_not = options.hopper ? "the target is not sm_90a" : "switched off";
      if (options.hopper && gpu.has_hopper && options.aligned) {
        std::vector<Fact> facts;
        Lowering lowering(tile, *grid, arguments, slots, out.recipe, gpu, options, name, facts);
        if (auto program = lowering.hopper(launch, why_not)) {
          out.facts.insert(out.facts.end(), facts.begin(), facts.end());
          out.programs.push_back(std::move(*program));
          out.recipe.launches.push_back(std::move(launch));
          continue;
        }
      }
      launch = {};
      out.facts.push_back({"form", "portable: " + why_not, grid->location});
      Lowering lowering(tile, *grid, arguments, slots, out.recipe, gpu, options, name, out.facts);
      out.programs.push_back(lowering.portable(launch));
      out.recipe.launches.push_back(std::move(launch));
    } catch (const Unsupported& e) {
      return std::unexpected(e.diagnostic);
    }
  }
  return out;
}

}  // namespace tilewright::plan::gpu
