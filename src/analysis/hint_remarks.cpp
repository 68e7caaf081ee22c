#include "analysis/hint_remarks.h"

namespace tilewright::analysis {
namespace {

using ir::MatrixUnit;

std::string unit_remark(MatrixUnit unit, TargetFamily family) {
  switch (unit) {
    case MatrixUnit::Any: return {};
    case MatrixUnit::Fma: return "followed";
    case MatrixUnit::Dot:
      return family == TargetFamily::Cpu ? "the planner's choice stands: see the line of the gemm"
                                         : "an instruction of processors: nothing to follow here";
    case MatrixUnit::Mma:
    case MatrixUnit::Wgmma:
      return family == TargetFamily::Cuda ? "followed" : "an instruction of GPUs: nothing to follow here";
  }
  return {};
}

std::string cache_remark(TargetFamily family) {
  return family == TargetFamily::Cpu
             ? "not followed: streaming stores are chosen by the tensor's size"
             : "followed by loads, stores and the copy engine (its policy in L2); cp.async has none";
}

std::string vector_remark(TargetFamily family) {
  return family == TargetFamily::Cpu
             ? "not followed: the width is the target's"
             : "followed between registers and tensors; the copy engine moves boxes and has no width";
}

std::string layout_remark(TargetFamily family) {
  return family == TargetFamily::Cpu ? "not followed: tiles are rows, the planner packs operands of gemm" : "followed";
}

}  // namespace

std::vector<HintRemark> hint_remarks(const ir::Kernel& kernel, TargetFamily family) {
  std::vector<HintRemark> out;
  for_each_op(*kernel.body, [&](const ir::Op& op) {
    const ir::Hints& h = op.hints;
    const auto add = [&](const ir::Hints& one, std::string why) {
      out.push_back({"hint " + to_text(one), std::move(why), op.location});
    };
    if (h.instruction != MatrixUnit::Any) add({.instruction = h.instruction}, unit_remark(h.instruction, family));
    if (h.avoid != MatrixUnit::Any) add({.avoid = h.avoid}, unit_remark(h.avoid, family));
    if (h.cache != ir::CacheHint::Default) add({.cache = h.cache}, cache_remark(family));
    if (h.vector) add({.vector = h.vector}, vector_remark(family));
    if (h.layout != ir::LayoutHint::Inferred) add({.layout = h.layout}, layout_remark(family));
  });
  return out;
}

}  // namespace tilewright::analysis
