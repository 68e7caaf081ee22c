#include "plan/cpu/plan.h"

#include "analysis/hint_remarks.h"
#include "plan/cpu/expand_math.h"
#include "plan/cpu/lowering.h"
#include "transform/pass.h"

namespace tilewright::plan::cpu {

Result<CpuPlan> plan(const ir::Kernel& tile, const target::Cpu& cpu, const Options& options) {
  if (!cpu.has_fma || cpu.vector_bits < 256) {
    return fail(DiagnosticCode::E2023, "the target " + cpu.name + " has no AVX2 and FMA",
                "use a processor of x86-64-v3 or later");
  }
  CpuPlan out;
  out.planned = ir::clone(tile);
  out.planned.phase = ir::Phase::Planned;
  if (options.fuse) {
    std::vector<transform::Note> notes;
    const transform::PassOptions passes{
        .plant = options.plant, .disabled = options.disabled_passes, .verify = options.verify};
    if (Status done = run_passes(out.planned, passes, notes); !done) return std::unexpected(done.error());
    for (transform::Note& note : notes) out.facts.push_back({std::move(note.what), std::move(note.why), note.location});
  }
  for (analysis::HintRemark& r : analysis::hint_remarks(tile, analysis::TargetFamily::Cpu))
    out.facts.push_back({std::move(r.what), std::move(r.why), r.location});
  out.vector.name = tile.name;
  out.vector.phase = ir::Phase::Vector;
  out.vector.texts = tile.texts;
  out.recipe.kernel = tile.name;
  out.recipe.target = "cpu:" + cpu.name;
  out.recipe.cpu_features = cpu.features;
  Arguments arguments(out.planned, out.vector, out.recipe);
  if (Status done = Lowering(out.planned, out.vector, arguments, out.recipe, cpu, options, out.facts).run(); !done) {
    return std::unexpected(done.error());
  }
  expand_math(out.vector, cpu, options.plant);
  for (size_t i = 0; i < tile.texts.size(); ++i) {  // from 1: an entry that returns 0 has failed nowhere
    out.recipe.messages.push_back({static_cast<int32_t>(i) + 1, tile.texts[i].text, to_string(tile.texts[i].location)});
  }
  return out;
}

}  // namespace tilewright::plan::cpu
