#include "plan/gpu/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/hint_remarks.h"
#include "ir/thread_verify.h"
#include "plan/gpu/data_indices.h"
#include "plan/gpu/lowering.h"

namespace tilewright::plan::gpu {
namespace {

using ir::MatrixUnit;

/// What the gemms of a grid ask for. A hint of one holds for the grid: its gemms share layouts.
struct AskedInstructions {
  const ir::Op* mma = nullptr;
  const ir::Op* wgmma = nullptr;
  bool no_mma = false, no_wgmma = false;
};

AskedInstructions asked_by(const ir::Op& grid) {
  AskedInstructions out;
  for_each_op(*grid.regions[0], [&](const ir::Op& op) {
    const ir::Hints& h = op.hints;
    if (h.instruction == MatrixUnit::Mma) out.mma = &op;
    if (h.instruction == MatrixUnit::Wgmma) out.wgmma = &op;
    out.no_wgmma |=
        h.instruction == MatrixUnit::Mma || h.instruction == MatrixUnit::Fma || h.avoid == MatrixUnit::Wgmma;
    out.no_mma |= h.instruction == MatrixUnit::Fma || h.avoid == MatrixUnit::Mma;
  });
  return out;
}

bool has_mma(const std::vector<ir::thread::Inst>& body) {
  for (const ir::thread::Inst& inst : body) {
    if (inst.op == ir::thread::Op::Mma || has_mma(inst.body) || has_mma(inst.orelse)) return true;
  }
  return false;
}

std::unexpected<Diagnostic> not_possible(const ir::Op& gemm, const std::string& why) {
  return fail_at(DiagnosticCode::E2004, gemm.location,
                 fmt::format("the hint {} cannot be followed: {}", to_text(gemm.hints), why),
                 "without the hint the compiler chooses an instruction that fits");
}

using runtime::ExpressionOp;

/// Extents that 32-bit index arithmetic takes, as guards: another class (wide_indices) serves larger ones.
void add_extent_guards(runtime::Recipe& recipe) {
  const auto guard = [&](const runtime::Expression& extent, const std::string& text) {
    recipe.requirements.push_back({combine(ExpressionOp::Le, {extent, runtime::constant(kLargestExtent)}), true,
                                   fmt::format("{} <= {} (32-bit indices)", text, kLargestExtent)});
  };
  for (size_t i = 0; i < recipe.slots.size(); ++i)
    if (recipe.slots[i].kind == runtime::SlotKind::Dim)
      guard(runtime::slot(static_cast<int32_t>(i)), recipe.slots[i].name);
  for (const auto& tensor : recipe.tensors)
    for (const auto& axis : tensor.axes)
      if (axis.binds < 0 && axis.extent.code.size() > 1) guard(axis.extent, axis.text);
}

/// The copy engine writes rows in pieces of 16 bytes: the last one must not reach past the row (seen on an H200 with
/// one element of two bytes, whose 14 neighbours were overwritten). Another class (not aligned) serves such rows.
void add_store_guards(const ir::Kernel& tile, runtime::Recipe& recipe) {
  for (size_t i = 0; i < recipe.tensors.size(); ++i) {
    const runtime::TensorArgument& tensor = recipe.tensors[i];
    if (tensor.access == runtime::Access::In || tensor.axes.size() < 2) continue;
    const runtime::Axis& last = tensor.axes.back();
    const auto extent = last.binds >= 0 ? runtime::slot(last.binds) : last.extent;
    const int64_t piece = std::max(16 / bytes(tile.tensors[i].buffer->type.dtype), 1);
    recipe.requirements.push_back(
        {combine(ExpressionOp::Eq,
                 {combine(ExpressionOp::FloorMod, {extent, runtime::constant(piece)}), runtime::constant(0)}),
         true, fmt::format("{} % {} == 0 (rows of {} stored by the copy engine)", last.text, piece, tensor.name)});
  }
}

/// A constant extent that 32-bit indices do not take, where no guard is needed to know.
bool has_large_extent(const ir::Kernel& tile) {
  return std::ranges::any_of(tile.tensors, [](const ir::TensorArgument& t) {
    return std::ranges::any_of(t.buffer->type.shape,
                               [](const ir::Index& n) { return n.constant().value_or(0) > kLargestExtent; });
  });
}

/// Scalar arguments that indices depend on, likewise.
void add_scalar_guards(const ir::Kernel& tile, const DataIndices& data, runtime::Recipe& recipe) {
  for (size_t i = 0; i < recipe.slots.size(); ++i) {
    const runtime::Slot& slot = recipe.slots[i];
    if (slot.kind != runtime::SlotKind::Scalar || !data.scalars.contains(tile.scalars[slot.argument].value)) continue;
    const runtime::Expression value = runtime::slot(static_cast<int32_t>(i));
    const runtime::Expression least = runtime::constant(-kLargestExtent), most = runtime::constant(kLargestExtent);
    recipe.requirements.push_back({combine(ExpressionOp::And, {combine(ExpressionOp::Le, {least, value}),
                                                               combine(ExpressionOp::Le, {value, most})}),
                                   true, fmt::format("|{}| <= {} (32-bit indices)", slot.name, kLargestExtent)});
  }
}

/// The portable form; stages that do not fit shared memory are given up before the kernel is.
void add_portable(const ir::Kernel& tile, const ir::Op& grid, const cpu::Arguments& arguments, const ir::Kernel& slots,
                  const target::Gpu& gpu, Options options, const std::string& name, runtime::Launch& launch,
                  GpuPlan& out) {
  bool may_cluster = true;
  for (;;) {
    std::vector<Fact> facts;
    try {
      Lowering lowering(tile, grid, arguments, slots, out.recipe, gpu, options, name, facts);
      const int cluster = may_cluster ? lowering.cluster_of_rows() : 1;
      out.programs.push_back(lowering.portable(launch, cluster));
      if (cluster > 1)
        out.facts.push_back({"cluster",
                             fmt::format("rows lie over {} blocks, so that a thread's part fits its registers; "
                                         "reductions meet in shared memory of the cluster",
                                         cluster),
                             grid.location});
      out.layouts.insert(out.layouts.end(), lowering.layouts().begin(), lowering.layouts().end());
      out.facts.insert(out.facts.end(), facts.begin(), facts.end());
      return;
    } catch (const NoCluster& reason) {
      may_cluster = false;
      out.facts.push_back(
          {"cluster", fmt::format("none: rows stay in one block, since {}", reason.why), grid.location});
      launch = {};
    } catch (const Unsupported& e) {
      if (e.diagnostic.code != DiagnosticCode::E2102 || !options.async_copies) throw;
      options.async_copies = false;
      launch = {};
      out.facts.push_back({"pipelined", "one stage: more do not fit shared memory", grid.location});
    }
  }
}

}  // namespace

Result<GpuPlan> plan(const ir::Kernel& tile, const target::Gpu& gpu, const Options& wanted) {
  GpuPlan out;
  Options options = wanted;
  options.wide_indices |= has_large_extent(tile);
  const DataIndices data = data_indices(tile);
  if (data.computed && !options.wide_indices) {
    options.wide_indices = true;
    out.facts.push_back({"indices",
                         fmt::format("64 bits: an index depends on {}, a computed number of any size",
                                     data.computed->name.empty() ? "data" : data.computed->name),
                         data.computed->def->location});
  }
  if (data.large && !options.wide_indices) {
    options.wide_indices = true;
    out.facts.push_back({"indices",
                         "64 bits: a step of an index may leave 32 bits (a product of sizes, or a large constant)",
                         data.large->location});
  }
  out.wide_indices = options.wide_indices;
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
  if (!options.wide_indices) {
    add_extent_guards(out.recipe);
    add_scalar_guards(tile, data, out.recipe);
  }
  if (reports_something(tile))
    for (size_t i = 0; i < tile.texts.size(); ++i)
      out.recipe.messages.push_back({static_cast<int32_t>(i), tile.texts[i].text, to_string(tile.texts[i].location)});
  bool uses_copy_engine = false;
  for (const ir::Op* grid : tile.body->ops) {
    if (grid->kind != ir::OpKind::Grid) {
      return fail_at(DiagnosticCode::E2101, grid->location,
                     fmt::format("no lowering for CUDA: {} outside a grid", ir::info(grid->kind).mnemonic));
    }
    const std::string name = fmt::format("tw_{}_{}", tile.name, out.programs.size());
    runtime::Launch launch;
    try {
      std::string why_not = options.hopper ? "the target is not sm_90a" : "switched off";
      const AskedInstructions asked = asked_by(*grid);
      if (asked.no_wgmma) why_not = "a hint keeps wgmma out";
      if (options.wide_indices)
        why_not = fmt::format("{}: indices of 64 bits", data.computed ? "an index depends on data"
                                                        : data.large  ? "an index may leave 32 bits"
                                                                      : "an extent may exceed 2^30");
      if (options.hopper && gpu.has_hopper && options.aligned && !asked.no_wgmma && !options.wide_indices) {
        std::vector<Fact> facts;
        Lowering lowering(tile, *grid, arguments, slots, out.recipe, gpu, options, name, facts);
        if (auto program = lowering.hopper(launch, why_not)) {
          out.facts.insert(out.facts.end(), facts.begin(), facts.end());
          out.layouts.insert(out.layouts.end(), lowering.layouts().begin(), lowering.layouts().end());
          out.programs.push_back(std::move(*program));
          if (lowering.has_counter())
            out.recipe.workspaces.push_back({"block counter", runtime::constant(64), runtime::constant(4)});
          out.recipe.launches.push_back(std::move(launch));
          uses_copy_engine = true;
          continue;
        }
      }
      if (asked.wgmma) return not_possible(*asked.wgmma, why_not);
      launch = {};
      out.facts.push_back({"form", "portable: " + why_not, grid->location});
      Options portable = options;
      portable.tensor_cores &= !asked.no_mma;
      add_portable(tile, *grid, arguments, slots, gpu, portable, name, launch, out);
      if (asked.mma && !has_mma(out.programs.back().body))
        return not_possible(*asked.mma, "no row of mma.sync has these types, shapes and operands");
      out.recipe.launches.push_back(std::move(launch));
    } catch (const Unsupported& e) {
      return std::unexpected(e.diagnostic);
    }
  }
  for (const ir::thread::Program& program : out.programs)
    if (Status s = ir::thread::verify(program); !s) return std::unexpected(s.error());
  if (uses_copy_engine) add_store_guards(tile, out.recipe);
  for (analysis::HintRemark& r : analysis::hint_remarks(tile, analysis::TargetFamily::Cuda))
    out.facts.push_back({std::move(r.what), std::move(r.why), r.location});
  return out;
}

}  // namespace tilewright::plan::gpu
